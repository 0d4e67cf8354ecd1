package cluster

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StopNode moves a node's pods away and switches it off; with force it is
// switched off at once.
func StopNode(ctx context.Context, options Options, name string, force bool, moves Moves, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		if force || !running(found, m) {
			return f.run(ctx, step.Plan{{f.switchOff(m)}})
		}
		if err := errors.Join(f.canStop(m, found), f.lostQuorum(ctx, found)); err != nil {
			return err
		}
		return f.run(ctx, step.Plan{{moves.Drain(f.api(ctx, m), m.name)}, {f.switchOff(m)}})
	})
}

// StartNode switches a node on and waits until it takes pods again.
func StartNode(ctx context.Context, options Options, name string, moves Moves, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		if err := f.canStart(m, found); err != nil {
			return err
		}
		if err := f.run(ctx, step.Plan{append(f.front(), f.boot(m))}); err != nil {
			return err
		}
		api, back := f.api(ctx, member{}), &memberAPI{fleet: f}
		return f.run(ctx, step.Plan{
			{todo("wait for "+m.name+" to be Ready", func(ctx context.Context) error { return back.awaitNode(ctx, m.name) })},
			{moves.Uncordon(api, m.name)},
		})
	})
}

func (f *fleet) switchOff(m member) step.Step {
	return step.Step{
		Name: "switch " + m.name + " off",
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if err != nil || !running(found, m) {
				return nil, err
			}
			return step.Diff{"switch " + m.name + " off"}, nil
		},
		Apply: func(ctx context.Context) error { return f.docker.SwitchOff(ctx, m.name) },
	}
}
