package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

const (
	// manyEnds is the number of ends during a watch after which it gives up, if
	// the last run was short. A program that only waits for another one needs
	// fewer. Ends before the watch do not count.
	manyEnds   = 3
	watchPause = 500 * time.Millisecond
)

// End describes how a program ended that does not run now.
type End struct {
	What      string // "container etcd"
	ID        string // differs for each end
	Code      int
	Ran       time.Duration
	Failed    string                       // why it did not start; "" if it did
	Restarted bool                         // it will be started again
	LastLine  func(context.Context) string // of its log
}

// WatchEnds returns an error, with the last line of the log, once a program has
// ended for good or ends repeatedly; nil when ctx ends. It reports any other end
// as progress. check returns false for a program that runs, that cannot be
// inspected, or that ended before since and will be started again.
func WatchEnds(ctx context.Context, check func(ctx context.Context, since time.Time) (End, bool)) error {
	since, seen, times := time.Now(), "", 0
	for {
		if last, ended := check(ctx, since); ended && last.ID != seen {
			seen, times = last.ID, times+1
			text := fmt.Sprintf("%s: %s", last.text(times), last.reason(ctx))
			if last.final(times, CheckLimit(ctx)) {
				return errors.New(text)
			}
			Report(ctx, text, 0, 0)
		}
		if Pause(ctx, watchPause) != nil {
			return nil
		}
	}
}

func (e End) String() string { return e.text(1) }

func (e End) text(times int) string {
	often := "ended"
	if times > 1 {
		often = fmt.Sprintf("ended %d times, the last time", times)
	}
	if e.Failed != "" {
		return e.What + " does not start"
	}
	return fmt.Sprintf("%s %s with exit code %d%s after %s",
		e.What, often, e.Code, signalOf(e.Code), e.Ran.Round(watchPause/5))
}

// signalOf returns the signal that an exit code means, as in " (killed)".
func signalOf(code int) string {
	const signalled, signals = 128, 64
	if code <= signalled || code > signalled+signals {
		return ""
	}
	return " (" + syscall.Signal(code-signalled).String() + ")"
}

func (e End) reason(ctx context.Context) string {
	if e.Failed != "" {
		return e.Failed
	}
	return cmp.Or(e.LastLine(ctx), "it has written no log")
}

// final reports whether the program will not recover by itself. A program that
// ran for longer than soon counts as started.
func (e End) final(times int, soon time.Duration) bool {
	return !e.Restarted || times >= manyEnds && e.Ran < soon
}
