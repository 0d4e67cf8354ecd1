package agent

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	firstPause = time.Second // after an error, and after a signal
	maxPause   = 5 * time.Minute
	startTime  = 20 * time.Second // until the components of a control plane have started

	// The values of GOGC for this process: a third of the CPU time of its start would be
	// garbage collection otherwise, and later its heap changes little.
	startPercent = 400
	idlePercent  = 25
)

// Forever calls part until ctx ends, again after a growing pause when it returns.
func Forever(ctx context.Context, part func(context.Context) error, failed func(error)) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		started := time.Now()
		if err := part(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		if time.Since(started) > maxPause {
			pause = firstPause
		}
		_ = step.Pause(ctx, pause)
	}
}

// WhileUnchanged ends the context of part when one of the files changes, and returns nil then.
func WhileUnchanged(ctx context.Context, files host.Files, part func(context.Context) error, paths ...string) error {
	before, err := files.Fingerprint(paths...)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for inner.Err() == nil {
			_ = step.Pause(inner, tickEvery)
			if now, err := files.Fingerprint(paths...); err == nil && now != before {
				cancel()
			}
		}
	}()
	if err := part(inner); ctx.Err() != nil || inner.Err() == nil {
		return err
	}
	return nil
}

// Follow calls check at once, after each signal of wake, and after growing
// pauses since the last signal, because the cause of a signal may take effect
// later.
func Follow(ctx context.Context, wake <-chan struct{}, check func(context.Context) error, failed func(error)) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		if err := check(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		if Awaits(ctx, wake, pause) {
			pause = firstPause
		}
	}
}

// Awaits waits for a signal, at most for a pause, and reports whether there was a signal.
func Awaits(ctx context.Context, wake <-chan struct{}, pause time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(pause): //nolint:forbidigo // the wait ends with ctx and with a signal, too
	case <-wake:
		return true
	}
	return false
}

// Signal is a channel with at most one pending signal.
type Signal chan struct{}

// NewSignal returns a Signal without a pending signal.
func NewSignal() Signal { return make(Signal, 1) }

// Give wakes the goroutine that waits for the signal.
func (s Signal) Give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// LimitGarbage limits the garbage in the heap of this process, but not during startTime: the
// components of the host then need the CPU.
func LimitGarbage(ctx context.Context) {
	debug.SetGCPercent(startPercent)
	_ = step.Pause(ctx, startTime)
	debug.SetGCPercent(idlePercent)
	debug.FreeOSMemory()
}
