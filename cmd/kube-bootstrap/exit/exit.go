// Package exit turns an error into messages, advice and the exit code of the
// program.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The exit codes, explained in docs/exit-codes.md.
const (
	ok          = 0
	failure     = 1
	usage       = 2
	preflight   = 3
	locked      = 4
	notUpToDate = 5
	partly      = 6
	blocked     = 7
	notRead     = 141 // the code of a program killed by SIGPIPE
	interrupted = 130
)

// Tell prints err and what to do about it to w, and returns the exit code.
// ignores states that the command has --ignore-preflight.
func Tell(ctx context.Context, w io.Writer, err error, ignores bool) int {
	if status, ok := errors.AsType[statusError](err); ok {
		return int(status)
	}
	code := codeOf(ctx, err)
	switch code {
	case ok, notUpToDate, notRead:
		return code
	case interrupted:
		complain(w, "interrupted")
	case usage: // nothing has happened yet, so the time is of no interest
		for _, e := range flatten(err) {
			fmt.Fprintln(w, "!!! "+progress.Indented(e.Error()))
		}
	default:
		for _, e := range flatten(err) {
			complain(w, e.Error())
		}
	}
	if resume, ok := errors.AsType[*resumeError](err); ok && code != usage && code != locked {
		complain(w, resume.advice)
	} else if code == preflight {
		printRemedy(w, err, ignores)
	}
	return code
}

// printRemedy prints that nothing was changed, and which problems can be ignored.
func printRemedy(w io.Writer, err error, ignores bool) {
	found := step.Problems(err)
	if errors.Is(err, errFirm) || len(found) == 0 || found[0].Name == "root" {
		return
	}
	text := "nothing was changed"
	if ignorable := Ignorable(found); ignores && ignorable != "" {
		text += "; put this right, or go on in spite of it with --ignore-preflight " + ignorable
	}
	complain(w, text)
}

// complain writes one line, in the form that the scripts had.
func complain(w io.Writer, text string) { fmt.Fprint(w, progress.Lines("!!!", time.Now(), text)) }

func codeOf(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, ErrNotUpToDate): // also at the end of a watch, which is an interrupt
		return notUpToDate
	case ctx.Err() != nil:
		return interrupted
	case errors.Is(err, ErrNotRead):
		return notRead
	case errors.As(err, new(*machines.Partly)):
		return partly
	case errors.Is(err, errBlocked):
		return blocked
	case errors.Is(err, host.ErrLocked):
		return locked
	case errors.Is(err, errUsage):
		return usage
	case errors.As(err, new(*remote.Refused)):
		return preflight
	case errors.As(err, new(*resumeError)):
		return failure
	case errors.Is(err, errPrinted), len(step.Problems(err)) > 0:
		return preflight
	}
	return failure
}

// ErrNotUpToDate sets the exit code of a status, whose table lists the missing steps.
var ErrNotUpToDate = errors.New("not everything is up to date")

// ErrNotRead is the error that nobody reads stdout any more.
var ErrNotRead = errors.New("nobody reads the output")

// The kinds of errors, which errors.Is finds in a kindError.
var (
	errUsage   = errors.New("usage")
	errFirm    = errors.New("firm")
	errPrinted = errors.New("told") // problems that were printed
	errBlocked = errors.New("blocked")
)

type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() error        { return e.error }
func (e *kindError) Is(target error) bool { return target == e.kind }

func of(kind, err error) error {
	if err == nil {
		return nil
	}
	return &kindError{err, kind}
}

// Usage returns err as an error of the user who typed the command or wrote its file; nil for nil.
func Usage(err error) error { return of(errUsage, err) }

// Firm returns err as an error whose problems --ignore-preflight cannot ignore; nil for nil.
func Firm(err error) error { return of(errFirm, err) }

type resumeError struct {
	error
	advice string
}

func (r *resumeError) Unwrap() error { return r.error }

// RunAgain is the advice after an error that another run may not have.
const RunAgain = "run the same command again to finish"

// Resume returns err as the error of a command that was changing something, with advice.
func Resume(err error, advice string) error { return &resumeError{err, advice} }

// Preflight returns the error of a preflight whose table already shows the problems.
func Preflight(found []*step.Problem) error {
	return of(errPrinted, errors.New("preflight found problems: "+strings.Join(names(found), ", ")))
}

// Blocked returns err as the error of an upgrade that its problems block before it begins; nil for nil.
func Blocked(err error) error { return of(errBlocked, err) }

type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Status returns the error of a command on a node, whose exit code becomes that of the program.
func Status(code int) error { return statusError(code) }

// Ignorable returns the names of the problems that --ignore-preflight can pass over.
func Ignorable(found []*step.Problem) string {
	return strings.Join(names(slices.DeleteFunc(slices.Clone(found), func(p *step.Problem) bool {
		return p.Firm
	})), ",")
}

func names(problems []*step.Problem) (all []string) {
	for _, problem := range problems {
		if !slices.Contains(all, problem.Name) {
			all = append(all, problem.Name)
		}
	}
	return all
}

// EitherOf joins alternatives: "a, b or c".
func EitherOf(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// OnlyProblems drops the names of the checks from around their problems.
func OnlyProblems(err error) error {
	var all []error
	for _, e := range joined(err) {
		found := step.Problems(e)
		if len(found) == 0 {
			all = append(all, e)
		}
		for _, problem := range found {
			all = append(all, problem)
		}
	}
	if len(all) == 0 {
		return err
	}
	return errors.Join(all...)
}

// flatten takes joined errors apart, so that each gets a line of its own.
func flatten(err error) (all []error) {
	parts := joined(err)
	if len(parts) == 0 {
		return []error{err}
	}
	for _, e := range parts {
		all = append(all, flatten(e)...)
	}
	return all
}

func joined(err error) []error {
	switch e := err.(type) {
	case *kindError, *resumeError:
		return joined(errors.Unwrap(err))
	case utilerrors.Aggregate:
		return e.Errors()
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}
