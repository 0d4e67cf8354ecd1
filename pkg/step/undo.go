package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Undo undoes the plan, last row first, except where UndoneAfter sets another
// order. It continues after a failure, so that all other steps are undone, and
// returns all errors joined. After a failure it does not undo the first row, which saves what
// the next Undo needs.
func (r *Runner) Undo(ctx context.Context, plan Plan) error {
	if len(plan) == 0 {
		return nil
	}
	if err := r.undoRows(ctx, plan[1:], 1); err != nil {
		return err
	}
	return r.undoRows(ctx, plan[:1], 0)
}

// undoRows undoes rows of a plan; the number of the first one is first. Each step
// has a goroutine that waits for the goroutines of other steps:
//
//	row 1                              row 2   row 3
//	a ◀─────────────────────────────── b ◀──── c
//	a ◀─── plan.UndoneAfter(a, c) ─────────────┘
func (r *Runner) undoRows(ctx context.Context, rows Plan, first int) error {
	running := goroutines(rows)
	errs := make([][]error, len(rows))
	var all sync.WaitGroup
	for i, row := range rows {
		errs[i] = make([]error, len(row))
		for j, s := range row {
			before := waitsFor(s, rows[i+1:])
			all.Go(func() {
				defer running[s.Name].Done()
				for _, name := range before {
					if other, ok := running[name]; ok {
						other.Wait()
					}
				}
				errs[i][j] = r.undo(ctx, first+i, s)
			})
		}
	}
	all.Wait()
	return errors.Join(slices.Concat(errs...)...)
}

// goroutines returns one group per name of a step.
func goroutines(rows Plan) map[string]*sync.WaitGroup {
	running := map[string]*sync.WaitGroup{}
	for _, s := range rows.Steps() {
		if running[s.Name] == nil {
			running[s.Name] = new(sync.WaitGroup)
		}
		running[s.Name].Add(1)
	}
	return running
}

// UndoneAfter returns p with another order of Undo: the Undo of s begins once the
// Undo of others has ended, instead of the Undo of all later rows. Steps that p
// does not contain are ignored. It has no effect in the first row, which is
// always undone last.
func (p Plan) UndoneAfter(s Step, others ...Step) Plan {
	after := []string{}
	for _, other := range others {
		after = append(after, other.Name)
	}
	for _, row := range p {
		for i := range row {
			if row[i].Name == s.Name {
				row[i].undoneAfter = after
			}
		}
	}
	return p
}

// waitsFor returns the names of the steps that are undone before s.
func waitsFor(s Step, later Plan) (names []string) {
	if s.undoneAfter != nil {
		return s.undoneAfter
	}
	for _, other := range later.Steps() {
		names = append(names, other.Name)
	}
	return names
}

func (r *Runner) undo(ctx context.Context, row int, s Step) error {
	if s.Undo == nil {
		return nil
	}
	r.emit(Event{Row: row, Step: s.Name, Kind: Started})
	leaving := WithLeft(r.reporting(ctx, row, s), func(what string) {
		r.emit(Event{Row: row, Step: s.Name, Kind: Left, Message: what})
	})
	if err := s.Undo(s.within(leaving)); err != nil {
		err = fmt.Errorf("undo %s: %w", s.Name, err)
		r.emit(Event{Row: row, Step: s.Name, Kind: Failed, Err: err})
		return err
	}
	r.emit(Event{Row: row, Step: s.Name, Kind: Undone})
	return nil
}
