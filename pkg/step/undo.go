package step

import (
	"context"
	"errors"
	"slices"
)

// Undo undoes the plan against the order of Do, except where UndoneAfter sets another
// order. It continues after a failure, so that all other steps are undone, and
// returns all errors joined. After a failure it does not undo the first stage, which
// saves what the next Undo needs.
func (r *Runner) Undo(ctx context.Context, plan Plan) error {
	g, err := r.begin(plan)
	if err != nil || len(g.stages) == 0 {
		return err
	}
	for _, nodes := range [][]*node{slices.Concat(g.stages[1:]...), g.stages[0]} {
		errs := walk(nodes, undone, func(_ int, n *node) error { return r.undo(ctx, n) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) undo(ctx context.Context, n *node) error {
	if n.excluded || n.Undo == nil {
		return nil
	}
	r.emit(n.event(Started))
	err := n.Undo(n.within(r.leaving(ctx, n)))
	return r.ended(n.event(Undone), "undo "+n.Name, err)
}
