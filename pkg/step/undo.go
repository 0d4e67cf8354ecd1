package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Undo undoes the plan, last stage first, except where UndoneAfter sets another
// order. It continues after a failure, so that all other steps are undone, and
// returns all errors joined. After a failure it does not undo the first stage, which
// saves what the next Undo needs.
func (r *Runner) Undo(ctx context.Context, plan Plan) error {
	if len(plan) == 0 {
		return nil
	}
	r.begins(plan)
	if err := r.undoStages(ctx, plan[1:], 1); err != nil {
		return err
	}
	return r.undoStages(ctx, plan[:1], 0)
}

// undoStages undoes stages of a plan; the number of the first one is first. Each step
// has a goroutine that waits for the goroutines of other steps:
//
//	stage 1                              stage 2   stage 3
//	a ◀─────────────────────────────── b ◀──── c
//	a ◀─── plan.UndoneAfter(a, c) ─────────────┘
func (r *Runner) undoStages(ctx context.Context, stages Plan, first int) error {
	all := undoings(stages, first)
	if names := waitingForever(all); len(names) > 0 {
		return fmt.Errorf("the Undo of these steps would wait for one another: %s", strings.Join(names, ", "))
	}
	var running sync.WaitGroup
	for _, u := range all {
		before := u.before(all)
		running.Go(func() {
			defer close(u.ended)
			for _, other := range before {
				<-other.ended
			}
			u.err = r.undo(ctx, u.stage, u.step)
		})
	}
	running.Wait()
	var errs []error
	for _, u := range all {
		errs = append(errs, u.err)
	}
	return errors.Join(errs...)
}

type undoing struct {
	step  Step
	stage int
	ended chan struct{}
	err   error // once it has ended
}

func undoings(stages Plan, first int) (all []*undoing) {
	for i, stage := range stages {
		for _, s := range stage {
			all = append(all, &undoing{step: s, stage: first + i, ended: make(chan struct{})})
		}
	}
	return all
}

// before returns the Undos of all that end before u begins. Two steps of one name are
// two steps.
func (u *undoing) before(all []*undoing) []*undoing {
	return slices.DeleteFunc(slices.Clone(all), func(other *undoing) bool {
		if other.stage == u.stage && slices.Contains(other.step.after, u.step.Name) {
			return false
		}
		if u.step.undoneAfter == nil {
			return other.stage <= u.stage
		}
		return other == u || !slices.Contains(u.step.undoneAfter, other.step.Name)
	})
}

// waitingForever returns the names of the steps that UndoneAfter, with the order of
// the stages, makes wait for one another.
func waitingForever(all []*undoing) (names []string) {
	waiting := all
	for range all {
		waiting = slices.DeleteFunc(slices.Clone(waiting), func(u *undoing) bool { return len(u.before(waiting)) == 0 })
	}
	for _, u := range waiting {
		names = append(names, u.step.Name)
	}
	return names
}

// UndoneAfter returns p with another order of Undo: the Undo of s begins once the
// Undo of others has ended, instead of the Undo of all later stages. Steps that p
// does not contain are ignored. It has no effect in the first stage, which is
// always undone last.
func (p Plan) UndoneAfter(s Step, others ...Step) Plan {
	after := []string{}
	for _, other := range others {
		after = append(after, other.Name)
	}
	for _, stage := range p {
		for i := range stage {
			if stage[i].Name == s.Name {
				stage[i].undoneAfter = after
			}
		}
	}
	return p
}

func (r *Runner) undo(ctx context.Context, stage int, s Step) error {
	if s.Undo == nil {
		return nil
	}
	r.emit(Event{Stage: stage, Step: s.Name, Kind: Started})
	err := s.Undo(s.within(r.leaving(ctx, stage, s.Name)))
	return r.ended(Event{Stage: stage, Step: s.Name, Kind: Undone}, "undo "+s.Name, err)
}
