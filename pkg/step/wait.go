package step

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// Tried and rejected: pauses that grow by a tenth. The steps and the agent then ask a
	// starting API server so often that it starts 0.3 s later.
	firstPause = 5 * time.Millisecond
	maxPause   = 250 * time.Millisecond

	// Until abandons an attempt without an answer and makes the next one,
	// because the server may have lost the request. The first attempt gets this
	// part of the limit, which is two seconds of the default. The time doubles
	// whenever it was too short.
	tryPart     = 150
	minTryLimit = 2 * time.Second
)

// Wait returns a step that is done once probe returns nil. If its limit is
// over, it fails with the last error of probe and the text of explain (the tail
// of a log; may be nil). It has no Undo.
func Wait(name string, probe func(context.Context) error, explain func() string) Step {
	return Step{
		Name:  name,
		Waits: true,
		Check: func(ctx context.Context) (Diff, error) {
			err := probe(ctx)
			return DiffOf(err, fmt.Sprintf("%s: %v", name, err))
		},
		Apply: func(ctx context.Context) error { return Until(ctx, probe, explain) },
	}
}

// Always returns a step that does its work in every run, because nothing shows
// whether it was done before.
func Always(name string, do func(context.Context) error) Step {
	return Step{
		Name: name, Waits: true,
		Check: func(context.Context) (Diff, error) { return Diff{name}, nil },
		Apply: do,
	}
}

// Until calls probe until it returns nil, with pauses that grow from
// milliseconds to a quarter of a second. It returns at once if an error is
// Final, and gives up after the limit of ctx, with the last answer: an error of
// a try that the limit has ended states only that.
func Until(ctx context.Context, probe func(context.Context) error, explain func() string) error {
	ctx, cancel := Limited(ctx)
	defer cancel()
	var last error
	limit := max(Limit(ctx)/tryPart, minTryLimit)
	for pause := firstPause; ; pause = min(pause*3/2, maxPause) {
		late, err := try(ctx, limit, probe)
		if err == nil {
			return nil
		}
		if final, ok := err.(*finalError); ok {
			err = final.error
			if !late { // otherwise it may only state that the time of this try is over
				return err
			}
		}
		if late {
			limit *= 2
		}
		if late && last != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
			err = last // err only states that the time is over
		}
		if last == nil || last.Error() != err.Error() {
			Report(ctx, err.Error(), 0, 0)
		}
		last = err
		if Pause(ctx, pause) != nil {
			return gaveUp(ctx, err, explain)
		}
	}
}

// Pause waits, and returns the cause if ctx ends before.
func Pause(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}

// try reports whether the limit of the attempt has passed.
func try(ctx context.Context, limit time.Duration, probe func(context.Context) error) (late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = probe(ctx)
	return ctx.Err() != nil, err
}

// Final marks an error that retrying cannot solve.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ error }

func (f *finalError) Unwrap() error { return f.error }

func gaveUp(ctx context.Context, last error, explain func() string) error {
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	err := fmt.Errorf("not within %s: %w", Limit(ctx), last)
	if explain == nil {
		return err
	}
	if tail := explain(); tail != "" {
		return fmt.Errorf("%w\n%s", err, tail)
	}
	return err
}

// Watching calls do, and cancels it as soon as watch returns an error: the
// reason why do cannot succeed. watch must return nil when its context ends.
func Watching(ctx context.Context, watch, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := watch(ctx)
		if err != nil {
			cancel(err)
		}
		ended <- err
	}()
	err := do(ctx)
	cancel(nil)
	if reason := <-ended; err != nil && reason != nil {
		return reason
	}
	return err
}

// Watched makes the Apply of a step fail as soon as watch returns the reason
// why it cannot succeed, see Watching.
func (s Step) Watched(watch func(context.Context) error) Step {
	apply := s.Apply
	if apply != nil { // otherwise a step that If has omitted
		s.Apply = func(ctx context.Context) error { return Watching(ctx, watch, apply) }
	}
	return s
}

// DefaultLimit is the limit of a step without its own.
const DefaultLimit = 5 * time.Minute

// A Check must answer in seconds, because status and a dry run wait for all of
// them. Its limit is a thirtieth of the step's limit: ten seconds of the
// default. A longer limit indicates a slow host, so its Checks may take longer
// too.
const (
	checkPart     = 30
	minCheckLimit = 10 * time.Second
)

type limitKey struct{}

// WithLimit returns a context in which each wait and each request may take
// limit. The Runner calls it with the limit of each step.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// Limit returns how long a wait or a request may take.
func Limit(ctx context.Context) time.Duration {
	if limit, ok := ctx.Value(limitKey{}).(time.Duration); ok && limit > 0 {
		return limit
	}
	return DefaultLimit
}

// Limited returns a context for a request that ends after the limit.
func Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, Limit(ctx))
}

// CheckLimit returns how long a Check may take.
func CheckLimit(ctx context.Context) time.Duration {
	return max(Limit(ctx)/checkPart, minCheckLimit)
}

// Checking returns a context for a request that must end in seconds: in a
// Check, or where the caller can continue without an answer.
func Checking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, CheckLimit(ctx))
}

// Half returns a context that ends after half of the remaining time. The
// caller uses the other half to find out why there was no answer.
func Half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return Checking(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}
