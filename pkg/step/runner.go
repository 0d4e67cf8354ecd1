package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Runner checks, applies and undoes a Plan. Emit receives every event, one at
// a time; it may be nil.
type Runner struct {
	Emit func(Event)

	mu     sync.Mutex
	left   []string
	stages int // of the plan that runs
}

// Left lists what the steps have reported by Leave, sorted.
func (r *Runner) Left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.left))
}

// Finding is the result of the Check of one step.
type Finding struct {
	Stage int
	ID    ID
	Step  string
	Diff  Diff  // empty: nothing to do
	Err   error // the Check failed or got no answer
}

// Check calls Check of every step of every stage, all at the same time, and
// changes nothing. If a server does not answer, all Checks that need it time
// out together instead of one after another.
func (r *Runner) Check(ctx context.Context, plan Plan) []Finding {
	g, err := r.begin(plan)
	if err != nil {
		return []Finding{{Step: "the plan", Err: err}}
	}
	nodes := g.wantedNodes()
	found := make([]Finding, len(nodes))
	each(nodes, func(i int, n *node) error { found[i] = r.check(ctx, n); return nil })
	return found
}

func (r *Runner) check(ctx context.Context, n *node) Finding {
	f := Finding{Stage: n.stage, ID: n.ID, Step: n.Name}
	if n.Check == nil {
		return f
	}
	f.Diff, f.Err = check(n.within(ctx), n.Step)
	e := n.event(UpToDate)
	switch {
	case f.Err != nil:
		e.Kind, e.Err = Failed, f.Err
	case len(f.Diff) > 0:
		e.Kind, e.Diff = Planned, f.Diff
	}
	r.emit(e)
	return f
}

// UpToDate reports whether every step of the plan is up to date. It runs all Checks
// at the same time, and cancels them as soon as a Check returns a Diff or an
// error. It emits events only if it returns true.
func (r *Runner) UpToDate(ctx context.Context, plan Plan) bool {
	g, err := r.begin(plan)
	if err != nil {
		return false // Do returns the error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	each(g.wantedNodes(), func(_ int, n *node) error {
		diff, err := check(n.within(ctx), n.Step)
		if err != nil || len(diff) > 0 {
			cancel()
		}
		return err
	})
	if ctx.Err() != nil {
		return false
	}
	for _, n := range g.wantedNodes() {
		r.emit(n.event(UpToDate))
	}
	return true
}

// Do applies every step that has a Diff, in the order of the Graph. All Checks of a stage run
// before its first Apply, so that it reports all problems at once. The first
// Apply that fails cancels the other steps of its stage.
func (r *Runner) Do(ctx context.Context, plan Plan) error {
	g, err := r.begin(plan)
	if err != nil {
		return err
	}
	for _, stage := range g.stages {
		diffs, err := r.checkStage(ctx, stage)
		if err != nil {
			return err
		}
		if err := r.applyStage(ctx, stage, diffs); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) checkStage(ctx context.Context, stage []*node) ([]Diff, error) {
	diffs := make([]Diff, len(stage))
	errs := each(stage, func(i int, n *node) (err error) {
		if n.excluded {
			return nil
		}
		if diffs[i], err = toApply(n.within(ctx), n.Step); err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s: %w", n.Name, err)
			failed := n.event(Failed)
			failed.Err = err
			r.emit(failed)
		}
		return err
	})
	return diffs, errors.Join(errs...)
}

// toApply returns the work of a step: to check again if the Check got no answer.
func toApply(ctx context.Context, s Step) (Diff, error) {
	diff, err := check(ctx, s)
	switch {
	case s.Apply == nil && err == nil && len(diff) > 0:
		return diff, errors.New(diff.String())
	case s.Apply != nil && IsUnanswered(err) && ctx.Err() == nil:
		return Diff{"look again: " + err.Error()}, nil
	}
	return diff, err
}

func (r *Runner) applyStage(ctx context.Context, stage []*node, diffs []Diff) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := walk(stage, needed, func(i int, n *node) error {
		err := context.Cause(ctx) // another step of the stage has failed
		if err == nil && !n.excluded {
			err = r.apply(ctx, n, diffs[i])
		}
		if err != nil {
			cancel(stopped{err})
		}
		return err
	})
	if first, ok := errors.AsType[stopped](context.Cause(ctx)); ok {
		return first.because // the errors of the other steps are consequences of it
	}
	return cmp.Or(errs...)
}

// stopped is the cause of the end of the other steps of a stage after a failure.
type stopped struct{ because error }

func (s stopped) Error() string   { return "stopped because " + s.because.Error() }
func (stopped) Is(err error) bool { return err == context.Canceled }

func (r *Runner) apply(ctx context.Context, n *node, diff Diff) error {
	if len(diff) == 0 {
		r.emit(n.event(UpToDate))
		return nil
	}
	started := n.event(Started)
	started.Diff = diff
	r.emit(started)
	ctx = n.within(r.leaving(ctx, n))
	err := n.Apply(ctx)
	if err == nil && !n.Waits {
		err = converged(ctx, n.Step)
	}
	return r.ended(n.event(Done), n.Name, err)
}

// ended reports the success, or the failure of what.
func (r *Runner) ended(success Event, what string, err error) error {
	if err != nil {
		success.Kind, success.Err = Failed, fmt.Errorf("%s: %w", what, err)
	}
	r.emit(success)
	return success.Err
}

func converged(ctx context.Context, s Step) error {
	var left Diff
	err := Until(ctx, func(ctx context.Context) (err error) {
		left, err = check(ctx, s)
		if err != nil && !IsUnanswered(err) {
			return Final(err)
		}
		return err
	}, nil)
	if err != nil {
		return fmt.Errorf("look again: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("still to do after it was done: %s", left)
	}
	return nil
}

func (s Step) within(ctx context.Context) context.Context {
	if s.Limit == 0 {
		return ctx
	}
	return WithLimit(ctx, s.Limit)
}

// Reporting returns a context in which Report emits the progress of the step that an event is about.
func (r *Runner) Reporting(ctx context.Context, of Event) context.Context {
	return WithReporter(ctx, func(message string, bytes, total int64) {
		r.emit(Event{
			Stage: of.Stage, ID: of.ID, Step: of.Step, Kind: Progress, Message: message, Bytes: bytes, Total: total,
		})
	})
}

// leaving is Reporting in which Leave emits what the step leaves.
func (r *Runner) leaving(ctx context.Context, n *node) context.Context {
	return WithLeft(r.Reporting(ctx, n.event(Progress)), func(what string) {
		left := n.event(Left)
		left.Message = what
		r.emit(left)
	})
}

// begin returns the graph of the plan that runs, and notes its number of stages, which each event
// states.
func (r *Runner) begin(plan Plan) (*Graph, error) {
	g, err := NewGraph(plan)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stages = g.shown
	return g, nil
}

func (n *node) event(kind EventKind) Event {
	return Event{Stage: n.stage, ID: n.ID, Step: n.Name, Kind: kind}
}

func (r *Runner) emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == Left {
		r.left = append(r.left, e.Message)
	}
	if r.Emit != nil {
		e.At, e.Stages = time.Now(), r.stages
		r.Emit(e)
	}
}
