package step

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Wrap adds to an error what failed, as in "make volume data"; nil stays nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

type unanswered struct{ error }

func (u *unanswered) Unwrap() error { return u.error }

// NoAnswer marks the error of a Check whose request got no answer, so that the
// state is unknown; nil stays nil. The Runner then applies the step: Apply waits for
// the answer, and changes nothing if nothing is missing.
func NoAnswer(err error) error {
	if err == nil || IsUnanswered(err) {
		return err
	}
	return &unanswered{err}
}

// IsUnanswered reports whether an error means that the state is unknown.
func IsUnanswered(err error) bool { return errors.As(err, new(*unanswered)) }

// Serves classifies the error of a readiness request: a refused connection is a
// certain result and stays as it is, every other error means that the state is unknown.
func Serves(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return NoAnswer(err)
}

// DiffOf returns the result of a Check whose request failed with err. The
// result is missing if something, such as a file, was seen to be missing, and
// err if the request got no answer. Without an error nothing is missing.
func DiffOf(err error, missing ...string) (Diff, error) {
	switch {
	case err == nil:
		return nil, nil
	case IsUnanswered(err) && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return missing, nil
}

// check calls the Check of a step with CheckLimit as its deadline. A result
// after the deadline, or after an interruption, is not an observation. A step without Apply
// has no such deadline.
func check(ctx context.Context, s Step) (Diff, error) {
	if s.Check == nil {
		return nil, nil
	}
	limited, cancel := ctx, func() {}
	if s.Apply != nil {
		limited, cancel = Checking(ctx)
	}
	defer cancel()
	started := time.Now()
	diff, err := s.Check(limited)
	switch {
	case limited.Err() == nil:
		return diff, err
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, context.Cause(ctx)
	}
	late := fmt.Errorf("no answer within %s", time.Since(started).Round(time.Second))
	if err != nil {
		late = fmt.Errorf("%w: %w", late, err)
	}
	return nil, NoAnswer(late)
}
