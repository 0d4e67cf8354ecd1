package step

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Unanswered is the error of a Check that asked and got no answer: whether the
// goal is reached is not known. The Runner applies such a step, as its Apply
// waits for the answer and changes nothing when there is nothing to change.
type Unanswered struct{ Err error }

func (u *Unanswered) Error() string { return u.Err.Error() }
func (u *Unanswered) Unwrap() error { return u.Err }

// NoAnswer makes an error Unanswered; nil stays nil.
func NoAnswer(err error) error {
	if err == nil || IsUnanswered(err) {
		return err
	}
	return &Unanswered{err}
}

// IsUnanswered reports whether an error says that nothing is known.
func IsUnanswered(err error) bool { return errors.As(err, new(*Unanswered)) }

// Serves sorts the error of asking a server whether it serves: that nobody
// listens is seen, and everything else is no answer.
func Serves(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return NoAnswer(err)
}

// DiffOf is the result of a Check whose look failed with err: what is missing
// if something was seen to be missing, a file among that, and an error if the
// look got no answer. Without an error nothing is missing.
func DiffOf(err error, missing ...string) (Diff, error) {
	switch {
	case err == nil:
		return nil, nil
	case IsUnanswered(err) && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return missing, nil
}

// check calls the Check of a step, which has no more time than CheckLimit. What
// it says after that is not an observation. A step that only looks is given
// the time it needs.
func check(ctx context.Context, s Step) (Diff, error) {
	if s.Check == nil {
		return nil, nil
	}
	if s.Apply == nil {
		return s.Check(ctx)
	}
	limited, cancel := Checking(ctx)
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
