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
	Step  string
	Diff  Diff  // empty: nothing to do
	Err   error // the Check failed or got no answer
}

// Look calls Check of every step of every stage, all at the same time, and
// changes nothing. If a server does not answer, all Checks that need it time
// out together instead of one after another.
func (r *Runner) Look(ctx context.Context, plan Plan) []Finding {
	r.begins(plan)
	var stages []int
	for i, stage := range plan {
		stages = append(stages, slices.Repeat([]int{i}, len(stage))...)
	}
	found := make([]Finding, len(stages))
	each(plan.Steps(), func(j int, s Step) { found[j] = r.look(ctx, stages[j], s) })
	return found
}

func (r *Runner) look(ctx context.Context, stage int, s Step) Finding {
	f := Finding{Stage: stage, Step: s.Name}
	if s.Check == nil {
		return f
	}
	f.Diff, f.Err = check(s.within(ctx), s)
	e := Event{Stage: stage, Step: s.Name, Kind: UpToDate}
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
	r.begins(plan)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	each(plan.Steps(), func(_ int, s Step) {
		if diff, err := check(s.within(ctx), s); err != nil || len(diff) > 0 {
			cancel()
		}
	})
	if ctx.Err() != nil {
		return false
	}
	for i, stage := range plan {
		each(stage, func(_ int, s Step) { r.emit(Event{Stage: i, Step: s.Name, Kind: UpToDate}) })
	}
	return true
}

// Do applies every step that has a Diff, stage by stage. All Checks of a stage run
// before its first Apply, so that it reports all problems at once. The first
// Apply that fails cancels the other steps of its stage.
func (r *Runner) Do(ctx context.Context, plan Plan) error {
	r.begins(plan)
	for i, stage := range plan {
		diffs, err := r.checkStage(ctx, i, stage)
		if err != nil {
			return err
		}
		if err := r.applyStage(ctx, i, stage, diffs); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) checkStage(ctx context.Context, stage int, steps []Step) ([]Diff, error) {
	diffs, errs := make([]Diff, len(steps)), make([]error, len(steps))
	each(steps, func(j int, s Step) {
		if diffs[j], errs[j] = toApply(s.within(ctx), s); errs[j] != nil && ctx.Err() == nil {
			errs[j] = fmt.Errorf("%s: %w", s.Name, errs[j])
			r.emit(Event{Stage: stage, Step: s.Name, Kind: Failed, Err: errs[j]})
		}
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

func (r *Runner) applyStage(ctx context.Context, stage int, steps []Step, diffs []Diff) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs, ended := make([]error, len(steps)), make([]chan struct{}, len(steps))
	for j := range ended {
		ended[j] = make(chan struct{})
	}
	each(steps, func(j int, s Step) {
		defer close(ended[j])
		if errs[j] = await(ctx, s, steps, ended); errs[j] == nil {
			errs[j] = r.apply(ctx, stage, s, diffs[j])
		}
		if errs[j] != nil {
			cancel(stopped{errs[j]})
		}
	})
	if first, ok := errors.AsType[stopped](context.Cause(ctx)); ok {
		return first.because // rather than what it made of the other steps
	}
	return cmp.Or(errs...)
}

// await waits until the steps of After have ended. It returns the cause if one of them, or
// another step of the stage, has failed.
func await(ctx context.Context, s Step, stage []Step, ended []chan struct{}) error {
	if len(s.after) == 0 {
		return nil
	}
	for j, other := range stage {
		if slices.Contains(s.after, other.Name) {
			<-ended[j]
		}
	}
	return context.Cause(ctx)
}

// stopped is the cause of the end of the other steps of a stage after a failure.
type stopped struct{ because error }

func (s stopped) Error() string   { return "stopped because " + s.because.Error() }
func (stopped) Is(err error) bool { return err == context.Canceled }

func (r *Runner) apply(ctx context.Context, stage int, s Step, diff Diff) error {
	if len(diff) == 0 {
		r.emit(Event{Stage: stage, Step: s.Name, Kind: UpToDate})
		return nil
	}
	r.emit(Event{Stage: stage, Step: s.Name, Kind: Started, Diff: diff})
	ctx = s.within(r.leaving(ctx, stage, s.Name))
	err := s.Apply(ctx)
	if err == nil && !s.Waits {
		err = converged(ctx, s)
	}
	return r.ended(Event{Stage: stage, Step: s.Name, Kind: Done}, s.Name, err)
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

// Reporting returns a context in which Report emits the progress of that step of a stage.
func (r *Runner) Reporting(ctx context.Context, stage int, name string) context.Context {
	return WithReporter(ctx, func(message string, bytes, total int64) {
		r.emit(Event{Stage: stage, Step: name, Kind: Progress, Message: message, Bytes: bytes, Total: total})
	})
}

// leaving is Reporting in which Leave emits what the step leaves.
func (r *Runner) leaving(ctx context.Context, stage int, name string) context.Context {
	return WithLeft(r.Reporting(ctx, stage, name), func(what string) {
		r.emit(Event{Stage: stage, Step: name, Kind: Left, Message: what})
	})
}

// begins notes the number of stages of the plan that runs, which each event states.
func (r *Runner) begins(plan Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stages = len(plan)
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

func each(steps []Step, do func(int, Step)) {
	var wg sync.WaitGroup
	for j, s := range steps {
		wg.Go(func() { do(j, s) })
	}
	wg.Wait()
}
