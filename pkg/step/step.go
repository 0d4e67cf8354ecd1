// Package step is the small engine behind every host verb: a list of steps
// that can be looked at, done and undone.
//
//	Check ──empty Diff──▶ in place, nothing to do
//	  │
//	  └──some Diff──▶ Apply ──▶ Check again: a Diff that is left is a failure
//
//	Undo puts back what Apply found, from what the host itself remembers.
package step

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Diff lists what is missing on the host, one line a change, written for the
// reader of a dry run: "write /etc/docker/daemon.json: bip = 10.1.3.1/24".
// An empty Diff says that the goal is reached.
type Diff []string

func (d Diff) String() string { return strings.Join(d, "; ") }

// Step is one thing that holds on a host once it has been applied.
type Step struct {
	// Name is the imperative that the user reads: "start etcd".
	Name string
	// Check compares host and goal and changes nothing. A Diff lists observed
	// differences. A request that fails (timeout, connection refused, not
	// authorized) observes nothing: then Check returns NoAnswer of its error.
	// If a file that the request needs, such as a certificate or a socket, does
	// not exist, the component was never set up. That is a Diff, so Check also
	// works on a host where the previous steps have not been applied.
	Check func(context.Context) (Diff, error)
	// Apply closes the Diff; it may run again after stopping half-way. A step
	// without Apply only looks: its Diff, like its error, is a failure.
	Apply func(context.Context) error
	// Undo puts back what Apply found, from the host alone. It does nothing
	// when Apply never ran. A step without Undo leaves nothing behind.
	Undo func(context.Context) error
	// Limit is the limit of each wait and each request; 0 is DefaultLimit. See
	// Plan.Within. The limit of a whole Check is CheckLimit.
	Limit time.Duration
	// Waits says that Apply returns only once it has seen the goal itself, so
	// that a second Check would only repeat its last look.
	Waits bool
}

// Plan is rows of steps. The steps of one row run at the same time; a row
// begins when the one before it has ended.
type Plan [][]Step

// Steps returns the steps of all rows in order.
func (p Plan) Steps() []Step {
	var all []Step
	for _, row := range p {
		all = append(all, row...)
	}
	return all
}

// Within sets the limit of all steps.
func (p Plan) Within(limit time.Duration) Plan {
	for _, row := range p {
		for i := range row {
			row[i].Limit = limit
		}
	}
	return p
}

// Compact drops steps without a name, which a plan has in the place of those
// that its settings leave out, and rows that are empty then.
func (p Plan) Compact() Plan {
	var compact Plan
	for _, row := range p {
		row = slices.DeleteFunc(row, func(s Step) bool { return s.Name == "" })
		if len(row) > 0 {
			compact = append(compact, row)
		}
	}
	return compact
}

// Problem is something a user must put right, or ignore by its name, before
// anything on the host is touched.
type Problem struct {
	Name   string `json:"name"`             // argument of --ignore-preflight: "docker-version"
	Text   string `json:"text"`             // the problem, with field and value
	Remedy string `json:"remedy,omitempty"` // how to solve it, in the imperative
	Firm   bool   `json:"firm,omitempty"`   // it cannot be ignored
}

func (p *Problem) Error() string {
	if p.Remedy == "" {
		return p.Text + " [" + p.Name + "]"
	}
	return p.Text + "; " + p.Remedy + " [" + p.Name + "]"
}

// Problems returns every Problem in the tree of err, in order. errors.As would
// stop at the first of a joined error.
func Problems(err error) []*Problem {
	switch e := err.(type) {
	case nil:
		return nil
	case *Problem:
		return []*Problem{e}
	case interface{ Unwrap() []error }:
		var all []*Problem
		for _, one := range e.Unwrap() {
			all = append(all, Problems(one)...)
		}
		return all
	}
	return Problems(errors.Unwrap(err))
}
