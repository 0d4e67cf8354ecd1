package step

import (
	"context"
	"fmt"
	"time"
)

const (
	firstPause = 5 * time.Millisecond
	maxPause   = 250 * time.Millisecond
)

// Wait is a step that holds once probe returns nil. It gives up after limit
// with the last answer of probe and whatever explain adds (the tail of a log;
// may be nil). It leaves nothing behind.
func Wait(name string, limit time.Duration, probe func(context.Context) error, explain func() string) Step {
	return Step{
		Name:  name,
		Waits: true,
		Check: func(ctx context.Context) (Diff, error) {
			if err := probe(ctx); err != nil {
				return Diff{name + ": " + err.Error()}, nil
			}
			return nil, nil
		},
		Apply: func(ctx context.Context) error { return Until(ctx, limit, probe, explain) },
	}
}

// Until calls probe until it returns nil, with pauses that grow from
// milliseconds to a quarter of a second.
func Until(ctx context.Context, limit time.Duration, probe func(context.Context) error, explain func() string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for pause := firstPause; ; pause = min(pause*3/2, maxPause) {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if last != nil && ctx.Err() != nil {
			err = last // this one only says that the time is over
		}
		last = err
		Report(ctx, err.Error(), 0, 0)
		select {
		case <-ctx.Done():
			return gaveUp(ctx, limit, err, explain)
		case <-time.After(pause):
		}
	}
}

func gaveUp(ctx context.Context, limit time.Duration, last error, explain func() string) error {
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	err := fmt.Errorf("not within %s: %w", limit, last)
	if explain == nil {
		return err
	}
	if tail := explain(); tail != "" {
		return fmt.Errorf("%w\n%s", err, tail)
	}
	return err
}
