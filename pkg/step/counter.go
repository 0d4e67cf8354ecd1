package step

import (
	"context"
	"sync"
)

// Counter counts the bytes written to it and reports every few megabytes.
// Several writers may share it.
type Counter struct {
	ctx   context.Context
	what  string
	total int64

	mu             sync.Mutex
	done, reported int64
}

const reportEvery = 4 << 20

// NewCounter returns a counter that reports the bytes as progress of what. The
// total is 0 if it is unknown.
func NewCounter(ctx context.Context, what string, total int64) *Counter {
	Report(ctx, what, 0, total)
	return &Counter{ctx: ctx, what: what, total: total}
}

// Write counts data.
func (c *Counter) Write(data []byte) (int, error) {
	c.Add(int64(len(data)))
	return len(data), nil
}

// Add counts n bytes.
func (c *Counter) Add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if c.done-c.reported >= reportEvery || c.done == c.total {
		c.reported = c.done
		Report(c.ctx, c.what, c.done, c.total)
	}
}
