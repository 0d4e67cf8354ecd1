package step

import (
	"context"
	"time"
)

// Kind says what an Event is about.
type Kind string

// The life of a step as its reporter sees it.
const (
	InPlace  Kind = "in-place" // nothing to do
	Started  Kind = "started"  // Apply or Undo began
	Progress Kind = "progress" // Apply reports how far it is
	Done     Kind = "done"     // Apply returned and the second Check was empty
	Undone   Kind = "undone"   // Undo returned
	Failed   Kind = "failed"   // see Err
	Planned  Kind = "planned"  // a look found a Diff
	Note     Kind = "note"     // Message is information to read while the step runs
	Left     Kind = "left"     // Undo leaves something behind on purpose, see Message
)

// Event is one thing that happened to a step. Steps never print; whoever
// started the Runner draws its events.
type Event struct {
	At      time.Time
	Row     int
	Step    string
	Kind    Kind
	Message string   // Progress: the current action or wait. Left: what Undo leaves behind, and why
	Bytes   int64    // Progress: done so far, in bytes; 0 if not counted
	Total   int64    // Progress: of how many bytes; 0 if unknown
	Doing   []string // Progress: what the step does at the same time, a few words each
	Diff    Diff     // Planned and Started
	Err     error    // Failed
}

type reporterKey struct{}

// Report tells the step's reporter how far it is: what is being done, and, for
// transfers, bytes done and in all. Outside of a Runner it does nothing.
func Report(ctx context.Context, message string, bytes, total int64) {
	if report, ok := ctx.Value(reporterKey{}).(func(string, int64, int64)); ok {
		report(message, bytes, total)
	}
}

// WithReporter returns a context in which Report calls report.
func WithReporter(ctx context.Context, report func(message string, bytes, total int64)) context.Context {
	return context.WithValue(ctx, reporterKey{}, report)
}

type leftKey struct{}

// Leave reports something that Undo leaves on the host on purpose, with the
// reason: "image web:1: container shop uses it". Outside of Undo it does
// nothing.
func Leave(ctx context.Context, what string) {
	if leave, ok := ctx.Value(leftKey{}).(func(string)); ok {
		leave(what)
	}
}

// WithLeft returns a context in which Leave calls leave.
func WithLeft(ctx context.Context, leave func(what string)) context.Context {
	return context.WithValue(ctx, leftKey{}, leave)
}
