package agent

import (
	"context"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const (
	firstPause = time.Second // after a failure, and after a change
	maxPause   = 5 * time.Minute
	dropEvery  = time.Second
)

// Forever calls part until ctx ends. A part that fails is started again after a
// pause that grows, so that no part ends the others.
func Forever(ctx context.Context, part func(context.Context) error, failed func(error)) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		started := time.Now()
		if err := part(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		if time.Since(started) > maxPause {
			pause = firstPause
		}
		sleep(ctx, pause, nil)
	}
}

// Follow calls look at once and after each signal of wake, and between signals
// after pauses that grow: a look may have come too early.
func Follow(ctx context.Context, wake <-chan struct{}, look func(context.Context) error, failed func(error)) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		if err := look(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		if sleep(ctx, pause, wake) {
			pause = firstPause
		}
	}
}

// sleep reports whether a signal ended it.
func sleep(ctx context.Context, pause time.Duration, wake <-chan struct{}) bool {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	case <-wake:
		return true
	}
	return false
}

// Signal is a channel that holds at most one signal.
type Signal chan struct{}

// NewSignal returns a Signal that nobody has given yet.
func NewSignal() Signal { return make(Signal, 1) }

// Give wakes the goroutine that waits for the signal.
func (s Signal) Give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// StaySmall keeps the memory of this process small until ctx ends.
func StaySmall(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		if n%int(maxPause/dropEvery) == 0 {
			host.SaveMemory()
		}
		host.DropProgram()
		sleep(ctx, dropEvery, nil)
	}
}
