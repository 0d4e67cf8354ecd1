package cluster

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RemoveNode takes a node out of its cluster and leaves nothing of it. With
// force its pods are not moved first, and it need not run.
func RemoveNode(ctx context.Context, options Options, name string, force bool, moves Moves, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		if force {
			return f.removeAtOnce(ctx, m, found, moves)
		}
		if err := f.removable(ctx, m, found, moves); err != nil {
			return err
		}
		return f.run(ctx, step.Plan{
			{f.boot(m)}, {moves.Drain(f.api(ctx, m), m.name)}, {f.turndown(m)}, {moves.Forget(f.api(ctx, m), m.name)}, {f.removeHost(m)},
		})
	})
}

func (f *fleet) removeAtOnce(ctx context.Context, m member, found []docker.FoundMachine, moves Moves) error {
	if f.lastMaster(m, found) {
		return f.run(ctx, step.Plan{{f.removeHost(m)}})
	}
	if err := f.lostQuorum(ctx, found); err != nil {
		return err
	}
	if !running(found, m) {
		return f.run(ctx, step.Plan{{f.forget(m)}, {f.removeHost(m)}})
	}
	return f.run(ctx, step.Plan{{f.turndown(m)}, {moves.Forget(f.api(ctx, m), m.name)}, {f.removeHost(m)}})
}

// forget has a control plane that runs take a node out of the cluster that can
// not do so itself.
func (f *fleet) forget(m member) step.Step {
	return step.Step{
		Name:  "forget " + m.name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			master, err := f.firstMaster(ctx, m.name)
			if err != nil {
				return nil, err
			}
			known, err := f.knows(ctx, master, m)
			if err != nil || !known {
				return nil, err
			}
			return step.Diff{"run kube-bootstrap forget " + m.name + " on " + master.Name}, nil
		},
		Apply: func(ctx context.Context) error {
			master, err := f.firstMaster(ctx, m.name)
			if err != nil {
				return err
			}
			return f.relay(ctx, f.byName(master.Name), []string{"forget", m.name, "--progress", "json"}, nil)
		},
	}
}

// knows reports whether the cluster counts a node in: one of its nodes, or a
// member of its etcd that was about to become one.
func (f *fleet) knows(ctx context.Context, master docker.FoundMachine, m member) (bool, error) {
	joined, err := f.joined(ctx)
	if err != nil || slices.Contains(joined, m.name) {
		return true, err
	}
	var report struct{ Etcd []struct{ IP string } }
	err = json.Unmarshal(f.hostStatus(ctx, master).Report, &report)
	return slices.ContainsFunc(report.Etcd, func(e struct{ IP string }) bool { return e.IP == m.addr.String() }), err
}

func (f *fleet) turndown(m member) step.Step {
	return step.Step{
		Name:  "turn " + m.name + " down",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if err != nil || !running(found, m) {
				return nil, err
			}
			return step.Diff{"run kube-bootstrap turndown on " + m.name}, nil
		},
		Apply: func(ctx context.Context) error {
			return f.relay(ctx, m, []string{"turndown", "--yes", "--progress", "json", "--keep-images"}, nil)
		},
	}
}

func (f *fleet) removeHost(m member) step.Step {
	return step.Step{
		Name: "remove host " + m.name,
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if slices.ContainsFunc(found, func(is docker.FoundMachine) bool { return is.Name == m.name }) {
				return step.Diff{"remove host " + m.name + " and its volumes"}, err
			}
			return nil, err
		},
		Apply: func(ctx context.Context) error {
			if err := f.dropNode(ctx, m.name); err != nil { // first: if it is killed, Up does not create the node again
				return err
			}
			return f.docker.RemoveMachine(ctx, m.name, []string{f.machine(m).Volumes["/var/lib"]})
		},
	}
}
