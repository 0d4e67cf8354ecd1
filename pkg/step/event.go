package step

import (
	"context"
	"strings"
	"sync"
	"time"
)

// EventKind is the type of an Event.
type EventKind string

// The kinds, in the order in which a step goes through them.
const (
	UpToDate EventKind = "up-to-date" // nothing to do
	Started  EventKind = "started"    // Apply or Undo was called
	Progress EventKind = "progress"   // Apply reports its current action
	Done     EventKind = "done"       // Apply returned and the second Check was empty
	Undone   EventKind = "undone"     // Undo returned
	Failed   EventKind = "failed"     // see Err
	Planned  EventKind = "planned"    // Runner.Look found a Diff
	Note     EventKind = "note"       // Message is information to read while the step runs
	Left     EventKind = "left"       // the host differs from before in something that is not part of the goal, see Message

	// Result is the kind of the last line of JSON progress, which is about the whole run.
	Result EventKind = "result"
)

// Event is one thing that happened to a step. Steps never print: the caller
// of the Runner displays its events.
type Event struct {
	At      time.Time `json:"at"`
	Stage   int       `json:"stage"`            // from 0; negative before the first stage
	Stages  int       `json:"stages,omitempty"` // number of stages of the plan
	Step    string    `json:"step"`             // the name of the step, for people
	ID      ID        `json:"id,omitempty"`     // of the step, for programs
	Kind    EventKind `json:"kind"`
	Message string    `json:"message,omitempty"` // Progress: the current action or wait. Left: what differs, and why
	Bytes   int64     `json:"bytes,omitempty"`   // Progress: done so far, in bytes; 0 if not counted
	Total   int64     `json:"total,omitempty"`   // Progress: size of the transfer in bytes; 0 if unknown
	Doing   []string  `json:"doing,omitempty"`   // Progress: the parallel actions of the step, a few words each
	Diff    Diff      `json:"diff,omitempty"`    // Planned and Started
	Err     error     `json:"-"`                 // Failed
}

// Host splits Step of a run on several hosts, such as "worker-1: start etcd". host is
// empty if Step does not name one.
func (e Event) Host() (host, name string) {
	host, name, several := strings.Cut(e.Step, ": ")
	if !several || strings.Contains(host, " ") {
		return "", e.Step
	}
	return host, name
}

type reporterKey struct{}

// Report sends a Progress event: the current action and, for transfers, the
// bytes that are done and the total. Outside of a Runner it does nothing.
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

// Leave reports something that Undo leaves on the host on purpose, or that Apply could not
// bring back, with the reason: "image web:1: container shop uses it". Outside of a Runner it
// does nothing.
func Leave(ctx context.Context, what string) {
	if leave, ok := ctx.Value(leftKey{}).(func(string)); ok {
		leave(what)
	}
}

// WithLeft returns a context in which Leave calls leave.
func WithLeft(ctx context.Context, leave func(what string)) context.Context {
	return context.WithValue(ctx, leftKey{}, leave)
}

// Counter counts the bytes written to it and reports them several times per second.
// Several writers may share it.
type Counter struct {
	ctx  context.Context
	what string

	mu          sync.Mutex
	done, total int64
	reported    time.Time
}

const reportEvery = 100 * time.Millisecond

// NewCounter reports the bytes as progress of what. total is 0 if it is unknown.
func NewCounter(ctx context.Context, what string, total int64) *Counter {
	Report(ctx, what, 0, total)
	return &Counter{ctx: ctx, what: what, total: total}
}

// Write counts data.
func (c *Counter) Write(data []byte) (int, error) {
	c.Add(int64(len(data)))
	return len(data), nil
}

// Expect adds n bytes to the total.
func (c *Counter) Expect(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += n
}

// Add counts n bytes. n is negative if a transfer starts again.
func (c *Counter) Add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if now := time.Now(); now.Sub(c.reported) > reportEvery || c.done == c.total {
		c.reported = now
		Report(c.ctx, c.what, c.done, c.total)
	}
}
