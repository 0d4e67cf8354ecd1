package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// counter reports the bytes of several transfers as one progress.
type counter struct {
	ctx   context.Context
	what  string
	mu    sync.Mutex
	done  int64
	total int64
	told  time.Time
}

// add counts n bytes. n is negative if a transfer starts again.
func (c *counter) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if now := time.Now(); now.Sub(c.told) > 100*time.Millisecond || c.done == c.total {
		c.told = now
		step.Report(c.ctx, c.what, c.done, c.total)
	}
}

func (c *counter) expect(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += n
}
