package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StopNode moves a node's pods away, unless force is set, and shuts the node down.
func StopNode(ctx context.Context, options Options, name string, force bool, drain node.Drain, emit func(session.Event)) error {
	return onNode(ctx, options, name, emit, func(c change, n topology.Node) error {
		stop := c.machine(n).Stop()
		if force || !c.state.Runs(n.Name) {
			return c.session.Run(ctx, step.Plan{{stop}})
		}
		if err := errors.Join(preflight.CanStop(c.nodes, c.state, n), preflight.LostQuorum(ctx, c.session, c.state)); err != nil {
			return err
		}
		return c.session.Run(ctx, step.Plan{{c.object(ctx, n).Drain(drain)}, {stop}})
	})
}

// StartNode starts a node and waits until it accepts pods again.
func StartNode(ctx context.Context, options Options, name string, emit func(session.Event)) error {
	return onNode(ctx, options, name, emit, func(c change, n topology.Node) error {
		if err := preflight.CanStart(c.nodes, c.state, n); err != nil {
			return err
		}
		boot := c.machine(n).Boot(new(docker.EngineHost))
		setup, subnet := c.options.setup(c.nodes), c.nodes.Subnet()
		return c.session.Run(ctx, step.Plan{
			{setup.Front(c.session, subnet), boot},
			{setup.LocalRegistry(c.session, subnet)},
			{apiserver.NewWaiter(c.session).Step(n.Name)},
			{node.Node{API: apiserver.Connect(ctx, c.session, ""), Name: n.Name}.Uncordon()},
		}.Compact())
	})
}

// RemoveNode removes a node from its cluster together with its host. With force
// it does not move the pods first, and the node need not run.
func RemoveNode(ctx context.Context, options Options, name string, force bool, drain node.Drain, emit func(session.Event)) error {
	return onNode(ctx, options, name, emit, func(c change, n topology.Node) error {
		if force {
			return c.removeAtOnce(ctx, n)
		}
		if err := c.removable(ctx, n, drain); err != nil {
			return err
		}
		m := c.machine(n)
		return c.session.Run(ctx, step.Plan{
			{m.Boot(new(docker.EngineHost))}, {c.object(ctx, n).Drain(drain)}, {c.turndown(n)}, {c.object(ctx, n).Forget()}, {m.Remove()},
		})
	})
}

// NodeLosses lists what RemoveNode removes for good. It returns the problems
// that RemoveNode returns before it changes anything.
func NodeLosses(ctx context.Context, options Options, name string, force bool, drain node.Drain) (losses []string, err error) {
	err = onNode(ctx, options, name, nil, func(c change, n topology.Node) error {
		losses = []string{hostLoss(n.Name)}
		if force {
			return nil
		}
		return c.removable(ctx, n, drain)
	})
	return losses, err
}

// removable returns the problems of a removal of n that moves its pods away first.
func (c change) removable(ctx context.Context, n topology.Node, drain node.Drain) error {
	if err := errors.Join(preflight.CanRemove(c.nodes, c.state, n), preflight.LostQuorum(ctx, c.session, c.state)); err != nil {
		return err
	}
	_, err := c.object(ctx, n).Drain(drain).Check(ctx) // before a stopped node is started
	return err
}

func (c change) removeAtOnce(ctx context.Context, n topology.Node) error {
	remove := []step.Step{c.machine(n).Remove()}
	if preflight.LastMaster(c.nodes, c.state, n) {
		return c.session.Run(ctx, step.Plan{remove})
	}
	if err := preflight.LostQuorum(ctx, c.session, c.state); err != nil {
		return err
	}
	if !c.state.Runs(n.Name) {
		return c.session.Run(ctx, step.Plan{{c.forgetFrom(n)}, remove})
	}
	return c.session.Run(ctx, step.Plan{{c.turndown(n)}, {c.object(ctx, n).Forget()}, remove})
}

// forgetFrom returns the step by which a control plane removes a node that is off.
func (c change) forgetFrom(n topology.Node) step.Step {
	return step.Step{
		Name:  "forget " + n.Name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			master, err := c.session.RunningMaster(ctx, n.Name)
			if err != nil {
				return nil, err
			}
			known, err := knows(ctx, c.session, master, n)
			if err != nil || !known {
				return nil, err
			}
			return step.Diff{"run kube-bootstrap forget " + n.Name + " on " + master.Name}, nil
		},
		Apply: func(ctx context.Context) error {
			master, err := c.session.RunningMaster(ctx, n.Name)
			if err != nil {
				return err
			}
			return remote.Run(ctx, c.session, master.Name, []string{"forget", n.Name}, nil)
		},
	}
}

// knows reports whether the cluster has a node: as an object, or as a member of
// its etcd that was about to become a node.
func knows(ctx context.Context, s *session.Session, master topology.NodeState, n topology.Node) (bool, error) {
	joined, err := apiserver.NodeNames(ctx, s)
	if err != nil || slices.Contains(joined, n.Name) {
		return true, err
	}
	var report struct{ Etcd []struct{ IP string } }
	err = json.Unmarshal(remote.Status(ctx, s, master).Report, &report)
	return slices.ContainsFunc(report.Etcd, func(e struct{ IP string }) bool { return e.IP == n.Addr.String() }), err
}
