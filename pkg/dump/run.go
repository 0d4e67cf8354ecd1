package dump

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const (
	// limit is how long a script may take.
	limit = time.Minute
	// grace is how long an ended script may need until it is left alone: nothing
	// ends a process that waits for a dead disk.
	grace = 10 * time.Second

	maxFile   = 32 << 20 // bytes of a file
	maxReason = 2 << 10  // bytes of an error message
)

// run runs a script of a source on the host, with a name as its first argument. It
// returns what the script printed, also if it failed.
func (c *collection) run(ctx context.Context, file, script, name string) ([]byte, error) {
	select {
	case c.room <- struct{}{}:
		defer func() { <-c.room }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.report(ctx, file, "")
	defer c.report(ctx, "", file)
	said, told := &output{most: maxFile}, &output{most: maxReason}
	err := c.await(ctx, said, told, []string{"/bin/sh", "-c", prelude + script, c.Program, name})
	text, whole := said.taken()
	if !whole {
		err = errors.Join(err, fmt.Errorf("more than %d MiB were printed, and the rest is left out", maxFile>>20))
	}
	reason, _ := told.taken()
	return text, withReason(err, string(reason))
}

// await runs a command to its end, or to its limit.
func (c *collection) await(ctx context.Context, said, told *output, args []string) error {
	most := c.limit
	if most == 0 {
		most = limit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it did not end within %s", most))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Exec(ctx, args, said, told) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return context.Cause(ctx)
	}
}

// withReason returns the error of a script without the script, and with what it
// wrote to stderr.
func withReason(err error, reason string) error {
	if err == nil {
		return nil
	}
	var command *host.CommandError
	if errors.As(err, &command) {
		err = command.Err
	}
	if reason = strings.TrimSpace(reason); reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(strings.Split(reason, "\n"), "; "))
}

// output keeps the first bytes that a command writes. A command that is left alone
// may still write.
type output struct {
	most int

	mu   sync.Mutex
	kept []byte
	cut  bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := o.most - len(o.kept)
	o.kept = append(o.kept, p[:min(room, len(p))]...)
	o.cut = o.cut || room < len(p)
	return len(p), nil
}

// taken returns what was written, and whether it is all of it. What is written
// later is dropped.
func (o *output) taken() (text []byte, whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, whole = o.kept, !o.cut
	o.kept, o.most = nil, 0
	return text, whole
}
