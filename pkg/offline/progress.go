package offline

import (
	"context"
	"io"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// progress counts bytes and reports every few megabytes. Several writers may
// share it.
type progress struct {
	ctx   context.Context
	what  string
	total int64

	mu             sync.Mutex
	done, reported int64
}

const reportEvery = 4 << 20

func newProgress(ctx context.Context, what string, total int64) *progress {
	step.Report(ctx, what, 0, total)
	return &progress{ctx: ctx, what: what, total: total}
}

func (p *progress) Write(data []byte) (int, error) {
	p.add(int64(len(data)))
	return len(data), nil
}

func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.done-p.reported >= reportEvery || p.done == p.total {
		p.reported = p.done
		step.Report(p.ctx, p.what, p.done, p.total)
	}
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// withContext stops a long copy once the context ends.
func withContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
