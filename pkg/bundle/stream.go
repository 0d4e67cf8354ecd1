package bundle

import (
	"context"
	"io"
)

// Pipe returns a reader of what write writes in a goroutine of its own. The
// caller must close it.
func Pipe(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// WithContext makes a long copy fail once the context ends.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
