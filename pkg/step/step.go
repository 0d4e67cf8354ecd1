// Package step defines steps, which can be checked, applied and undone, and a
// Runner that does this to a list of them.
//
//	Check ──empty Diff──▶ nothing to do
//	  │
//	  └──some Diff──▶ Apply ──▶ Check again: a remaining Diff is a failure
//
// Undo restores the state before Apply from what Apply saved on the host.
package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Diff lists the changes that are necessary on the host, one per line, as a
// dry run shows them: "write /etc/docker/daemon.json: bip = 10.1.3.1/24". An
// empty Diff means that nothing is necessary.
type Diff []string

// shownDifferences is how many differences a text lists: a host of a large
// cluster may miss a thousand routes at once.
const shownDifferences = 10

// String joins the first differences, and states how many there are further.
func (d Diff) String() string {
	if more := len(d) - shownDifferences; more > 1 {
		return fmt.Sprintf("%s; and %d more", strings.Join(d[:shownDifferences], "; "), more)
	}
	return strings.Join(d, "; ")
}

// Step is one property of a host, and how to check, apply and undo it.
type Step struct {
	// ID identifies the step in its plan. A package exports it as a constant if another one names it.
	ID ID
	// Name is the imperative that the user reads: "start etcd".
	Name string
	// Check compares host and goal and changes nothing. A Diff lists observed
	// differences. A request that fails (timeout, connection refused, not
	// authorized) observes nothing: then Check returns NoAnswer of its error.
	// If a file that the request needs, such as a certificate or a socket, does
	// not exist, the component was never set up. That is a Diff, so Check also
	// works on a host where the previous steps have not been applied.
	Check func(context.Context) (Diff, error)
	// Apply makes the changes of the Diff. It may be interrupted and run again.
	// Without Apply the step is only a check: a Diff is a failure.
	Apply func(context.Context) error
	// Undo restores the state before Apply. It only uses what is saved on the
	// host. It does nothing if Apply never ran. It is nil if Apply leaves
	// nothing behind.
	Undo func(context.Context) error
	// Needs names steps of the same stage whose Apply ends before that of this step begins. A step also
	// needs all steps of the stage before.
	Needs []ID
	// UndoneAfter names the steps whose Undo ends before that of this step begins; nil: all steps that
	// need it, directly or through others.
	UndoneAfter []ID
	// Limit is the limit of each wait and each request; 0 is DefaultLimit. See
	// Plan.Within. The limit of a whole Check is CheckLimit.
	Limit time.Duration
	// Waits states that Apply returns only after it has observed the goal
	// itself. The Runner then omits the second Check.
	Waits bool

	excluded bool // see If
}

// Plan is a list of stages, which are lists of steps: the form in which a Graph is written and
// printed. The steps of one stage run concurrently, except where one needs another. A stage begins
// after all steps of the stage before have ended.
type Plan [][]Step

// Steps returns the steps of all stages in order, without the excluded ones.
func (p Plan) Steps() []Step { return slices.Concat(p.Wanted()...) }

// InOrder returns the plan whose stages have one step each.
func InOrder(steps ...Step) Plan {
	return slices.Collect(slices.Chunk(steps, 1))
}

// Within sets the limit of all steps.
func (p Plan) Within(limit time.Duration) Plan {
	for _, stage := range p {
		for i := range stage {
			stage[i].Limit = limit
		}
	}
	return p
}

// When returns a step whose Apply is do, and whose Diff is todo if needed returns true.
func When(
	id ID, name, todo string, needed func(context.Context) (bool, error), do func(context.Context) error,
) Step {
	return Step{ID: id, Name: name, Apply: do, Check: func(ctx context.Context) (Diff, error) {
		if is, err := needed(ctx); err != nil || !is {
			return nil, err
		}
		return Diff{todo}, nil
	}}
}

// Waiting returns the step with Waits set.
func (s Step) Waiting() Step {
	s.Waits = true
	return s
}

// Needing returns the step with further Needs.
func (s Step) Needing(ids ...ID) Step {
	s.Needs = append(slices.Clip(s.Needs), ids...)
	return s
}

// UndoAfter returns the step with these UndoneAfter.
func (s Step) UndoAfter(ids ...ID) Step {
	s.UndoneAfter = append([]ID{}, ids...)
	return s
}

// If returns the step, which is excluded unless it is wanted. Other steps may name it nevertheless.
func (s Step) If(wanted bool) Step {
	s.excluded = s.excluded || !wanted
	return s
}

// Excluded reports whether a plan omits the step: If has excluded it, or it is the zero Step.
func (s Step) Excluded() bool { return s.excluded || s.ID == "" && s.Name == "" }

// Wanted returns the plan as it is printed: without excluded steps and the stages that have no
// others. Its steps may name steps that are excluded, so it cannot run.
func (p Plan) Wanted() Plan {
	var wanted Plan
	for _, stage := range p {
		stage = slices.DeleteFunc(slices.Clone(stage), Step.Excluded)
		if len(stage) > 0 {
			wanted = append(wanted, stage)
		}
	}
	return wanted
}

// Problem is an error that a user must solve, or may ignore by its name,
// before anything on the host is changed.
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

// Problems returns every Problem in the tree of err, in order. errors.As
// would return only the first Problem of a joined error.
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
