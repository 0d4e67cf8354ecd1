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
func Wait(id ID, name string, probe func(context.Context) error, explain func() string) Step {
	return Step{
		ID: id, Name: name,
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
func Always(id ID, name string, do func(context.Context) error) Step {
	return Step{
		ID: id, Name: name, Waits: true,
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
		final := isFinal(err)
		if marked, ok := err.(*finalError); ok {
			err = marked.error
		}
		if final && !late { // otherwise it may only state that the time of this try is over
			return err
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

// UntilNone is Until for a check that finds no difference.
func UntilNone(ctx context.Context, check func(context.Context) (Diff, error), explain func() string) error {
	return Until(ctx, func(ctx context.Context) error {
		diff, err := check(ctx)
		if err == nil && len(diff) > 0 {
			err = errors.New(diff.String())
		}
		return err
	}, explain)
}

// Persists reports whether a difference is still there after patience, for a repair that would
// do harm if the difference ended by itself. A check that fails has observed nothing: it is
// repeated until the limit of ctx, and its error returned.
func Persists(
	ctx context.Context, limit time.Duration, check func(context.Context) (Diff, error),
) (persists bool, err error) {
	waiting, cancel := within(ctx, limit)
	defer cancel()
	err = Until(ctx, func(ctx context.Context) error {
		last := waiting.Err() != nil // before the check begins
		diff, err := check(ctx)
		if err != nil || len(diff) == 0 {
			return err
		}
		if persists = last; persists {
			return nil
		}
		return errors.New(diff.String())
	}, nil)
	return persists && err == nil, err
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
	ctx, cancel := within(ctx, limit)
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

func isFinal(err error) bool { return errors.As(err, new(*finalError)) }

func gaveUp(ctx context.Context, last error, explain func() string) error {
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	return Explained(fmt.Errorf("not within %s: %w", Span(ctx), last), explain)
}

// Explained adds the text of explain to an error; nil stays nil.
func Explained(err error, explain func() string) error {
	if err == nil || explain == nil {
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
