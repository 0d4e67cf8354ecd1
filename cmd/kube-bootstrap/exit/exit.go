// Package exit turns an error into messages, advice and the exit code of the
// program.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
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
	notRead     = 141 // the code of a program killed by SIGPIPE
	interrupted = 130
)

// Tell prints err and what to do about it to w, and returns the exit code.
// ignores states that the command has --ignore-preflight.
func Tell(ctx context.Context, w io.Writer, err error, ignores bool) int {
	var status statusError
	if errors.As(err, &status) {
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
	var resume *resumeError
	switch {
	case errors.As(err, &resume) && code != usage && code != locked:
		complain(w, resume.advice)
	case code == preflight:
		tellWayOn(w, err, ignores)
	}
	return code
}

// tellWayOn prints that nothing was changed, and which problems can be ignored.
func tellWayOn(w io.Writer, err error, ignores bool) {
	found := step.Problems(err)
	if errors.Is(err, firm) || len(found) == 0 || found[0].Name == "root" {
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
	var resume *resumeError
	var found *preflightError
	var refused *remote.Refused
	switch {
	case err == nil:
		return ok
	case errors.Is(err, ErrNotUpToDate): // also at the end of a watch, which is an interrupt
		return notUpToDate
	case ctx.Err() != nil:
		return interrupted
	case errors.Is(err, ErrNotRead):
		return notRead
	case errors.Is(err, host.ErrLocked):
		return locked
	case errors.Is(err, wrongUsage):
		return usage
	case errors.As(err, &refused):
		return preflight
	case errors.As(err, &resume):
		return failure
	case errors.As(err, &found), len(step.Problems(err)) > 0:
		return preflight
	}
	return failure
}
