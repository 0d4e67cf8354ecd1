package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The exit codes, explained in docs/exit-codes.md.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitPreflight   = 3
	exitLocked      = 4
	exitNotInPlace  = 5
	exitNotRead     = 141 // the code of a program killed by SIGPIPE
	exitInterrupted = 130
)

// errNotInPlace ends a status whose table already says what is missing.
var errNotInPlace = errors.New("not everything is in place")

// errNotRead is the error that nobody reads stdout any more.
var errNotRead = errors.New("nobody reads the output")

// usageError is an error of the one who typed the command or wrote its file.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

// resumeError is the error of a verb that was changing the host, with how to go on.
type resumeError struct {
	err    error
	advice string
}

func (r *resumeError) Error() string { return r.err.Error() }
func (r *resumeError) Unwrap() error { return r.err }

// firmError holds problems that no --ignore-preflight passes over.
type firmError struct{ err error }

func (f *firmError) Error() string { return f.err.Error() }
func (f *firmError) Unwrap() error { return f.err }

// preflightError ends a preflight whose table already names the problems.
type preflightError struct{ names string }

func (e *preflightError) Error() string { return "preflight found problems: " + e.names }

// tell prints err, what to do about it, and returns the exit code.
func (p *program) tell(ctx context.Context, err error) int {
	var remote *remoteExit
	if errors.As(err, &remote) {
		return remote.code
	}
	code := exitCode(ctx, err)
	switch code {
	case exitOK, exitNotInPlace, exitNotRead:
		return code
	case exitInterrupted:
		p.complain("interrupted")
	case exitUsage: // nothing has happened yet, so the time is of no interest
		for _, e := range flatten(err) {
			fmt.Fprintln(p.err, "!!! "+progress.Indented(e.Error()))
		}
	default:
		for _, e := range flatten(err) {
			p.complain(e.Error())
		}
	}
	var resume *resumeError
	switch {
	case errors.As(err, &resume) && code != exitUsage && code != exitLocked:
		p.complain(resume.advice)
	case code == exitPreflight:
		p.tellWayOn(err)
	}
	return code
}

// tellWayOn prints that nothing was changed, and which problems can be ignored.
func (p *program) tellWayOn(err error) {
	var firm *firmError
	found := step.Problems(err)
	if errors.As(err, &firm) || len(found) == 0 || found[0].Name == "root" {
		return
	}
	text := "nothing was changed"
	ignorable := slices.DeleteFunc(found, func(p *step.Problem) bool { return p.Firm })
	if p.ignores && len(ignorable) > 0 {
		text += "; put this right, or go on in spite of it with --ignore-preflight " + names(ignorable)
	}
	p.complain(text)
}

func exitCode(ctx context.Context, err error) int {
	var usage *usageError
	var resume *resumeError
	var preflight *preflightError
	var refused *remote.Refused
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errNotRead):
		return exitNotRead
	case errors.Is(err, errNotInPlace):
		return exitNotInPlace
	case errors.Is(err, host.ErrLocked):
		return exitLocked
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &refused):
		return exitPreflight
	case errors.As(err, &resume):
		return exitFailure
	case errors.As(err, &preflight), len(step.Problems(err)) > 0:
		return exitPreflight
	}
	return exitFailure
}

func names(problems []*step.Problem) string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Name)
	}
	return strings.Join(all, ",")
}

// flatten takes joined errors apart, so that each gets a line of its own.
func flatten(err error) []error {
	var all []error
	for _, e := range joined(err) {
		if more := joined(e); len(more) > 0 {
			all = append(all, flatten(e)...)
			continue
		}
		all = append(all, e)
	}
	if all == nil {
		all = []error{err}
	}
	return all
}

func joined(err error) []error {
	switch e := err.(type) {
	case *usageError:
		return joined(e.err)
	case *resumeError:
		return joined(e.err)
	case *firmError:
		return joined(e.err)
	case utilerrors.Aggregate:
		return e.Errors()
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// complain and say write one line to stderr, in the form the scripts had.
func (p *program) complain(text string) { fmt.Fprint(p.err, progress.Lines("!!!", time.Now(), text)) }
func (p *program) say(text string)      { fmt.Fprint(p.err, progress.Lines("+++", time.Now(), text)) }
