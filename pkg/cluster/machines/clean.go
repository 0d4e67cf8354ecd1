package machines

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// alone makes other commands of this machine fail while nodes are removed.
var alone = session.Requirements{Needs: session.Nodes, Lock: session.ClusterLock}

// change is one command that removes nodes. It has the locks of all machines that answer.
type change struct {
	session  *session.Session
	provider *Provider
	state    topology.State
}

// do calls a function with the machines of a cluster while it has their locks.
func do(ctx context.Context, o session.Selection, emit func(session.HostEvent), work func(change) error) error {
	scope := alone
	scope.Emit = emit
	return session.Do(ctx, o, scope, func(s *session.Session, _ topology.State) error {
		p, err := Of(s)
		if err != nil {
			return err
		}
		release, err := p.lockAll(ctx)
		if err != nil {
			return err
		}
		defer release()
		state, err := s.Observe(ctx) // another run may have changed the cluster in between
		if err != nil {
			return err
		}
		return work(change{s, p, state})
	})
}

// Clean turns all machines down, the control planes after the workers and one after the other, and
// removes what Up has sent to them. A machine that does not answer is an error of Partly.
func Clean(ctx context.Context, o session.Selection, emit func(session.HostEvent)) error {
	return do(ctx, o, emit, func(c change) error {
		r := &run{provider: c.provider}
		var controlPlanes []topology.NodeState
		var workers []Machine
		for _, n := range c.state.Nodes() {
			switch {
			case n.State == stateOff:
				r.failed.add(c.provider.facts[n.Name].Err)
			case n.Role == topology.ControlPlane:
				controlPlanes = append(controlPlanes, n)
			default:
				workers = append(workers, Machine{Spec: n.Spec})
			}
		}
		r.concurrently(workers, func(m Machine) error {
			r.failed.add(c.turndown(ctx, m.Spec.Name))
			return nil
		})
		for _, n := range slices.Backward(controlPlanes) {
			r.failed.add(c.turndown(ctx, n.Name))
		}
		if err := r.failed.err(); err != nil {
			return err
		}
		return errors.Join(kubeconfig.Unmerge(ctx, c.session.Selection), os.RemoveAll(c.session.PrivateDir()))
	})
}

// turndown removes a machine from its cluster, and what Up has sent to it.
func (c change) turndown(ctx context.Context, name string) error {
	return c.session.Run(ctx, step.Plan{{c.turndownStep(name)}, {c.removeStep(name)}})
}

func (c change) turndownStep(name string) step.Step {
	return step.When(step.IDOf("turndown", name), "turn "+name+" down", "run kube-bootstrap turndown on "+name,
		func(context.Context) (bool, error) { return c.state.Runs(name), nil },
		func(ctx context.Context) error {
			return remote.Run(ctx, c.session, name, []string{"turndown", "--yes"}, nil)
		}).Waiting()
}

func (c change) removeStep(name string) step.Step {
	return step.Always(step.IDOf("remove-program", name), "remove kube-bootstrap from "+name,
		func(ctx context.Context) error { return removeFiles(ctx, c.provider.Node(name)) })
}

// CleanLosses lists the nodes that Clean removes.
func CleanLosses(ctx context.Context, o session.Selection) ([]string, error) {
	list := func(_ *session.Session, state topology.State) (all []string, err error) {
		for _, n := range state.Running() {
			all = append(all, nodeLoss(n.ClusterNode))
		}
		return all, nil
	}
	return session.Get(ctx, o, session.Requirements{}, list)
}

func nodeLoss(n topology.ClusterNode) string {
	return "node " + n.Name + " of machine " + n.Spec.Address + ", which gets its former state back"
}

// RemoveNode drains a node, removes it from its cluster, and turns its machine down. With force it does
// not drain, and the machine need not answer.
func RemoveNode(
	ctx context.Context, o session.Selection, name string, force bool, drain node.Drain,
	emit func(session.HostEvent),
) error {
	return do(ctx, o, emit, func(c change) error {
		n, err := c.removable(ctx, name, force, drain)
		if err != nil {
			return err
		}
		object := node.Node{API: apiserver.Connect(ctx, c.session, n.Name), Name: n.Name}
		if !c.state.Runs(n.Name) {
			return c.session.Run(ctx, step.Plan{{c.forget(n)}})
		}
		return c.session.Run(ctx, step.Plan{
			{object.Drain(drain).If(!force)}, {c.turndownStep(n.Name)}, {object.Forget()}, {c.removeStep(n.Name)},
		})
	})
}

// removable returns the node of this name, or the problems of its removal.
func (c change) removable(
	ctx context.Context, name string, force bool, drain node.Drain,
) (topology.ClusterNode, error) {
	nodes := c.state.Topology(c.session.Name)
	n, err := nodes.Pick(name)
	if err != nil {
		return n, err
	}
	is, _ := c.state.Node(n.Name)
	switch {
	case is.State == topology.StateNew:
		return n, &step.Problem{Name: "node-missing", Text: "machine " + n.Name + " is no node of the cluster",
			Remedy: "omit it from the file"}
	case preflight.LastControlPlane(nodes, c.state, n):
		return n, &step.Problem{Name: "last-control-plane",
			Text:   n.Name + " is the last control plane that answers: without it there is no cluster",
			Remedy: "use `kube-bootstrap cluster clean -f FILE`"}
	case force:
		return n, nil
	case !is.Running():
		return n, &step.Problem{Name: "node-off", Text: "machine " + n.Name + " does not answer",
			Remedy: "switch it on, or remove it with --force"}
	}
	lost := preflight.LostQuorum(ctx, c.session, c.state)
	if err := errors.Join(preflight.CanRemove(nodes, c.state, n), lost); err != nil {
		return n, err
	}
	object := node.Node{API: apiserver.Connect(ctx, c.session, n.Name), Name: n.Name}
	_, err = object.Drain(drain).Check(ctx)
	return n, err
}

// forget returns the step by which a control plane removes a node whose machine does not answer.
func (c change) forget(n topology.ClusterNode) step.Step {
	return step.Always(step.IDOf("forget", n.Name), "forget "+n.Name, func(ctx context.Context) error {
		controlPlane, err := c.session.RunningControlPlane(ctx, n.Name)
		if err != nil {
			return err
		}
		return remote.Run(ctx, c.session, controlPlane.Name, []string{"forget", n.Name}, nil)
	})
}

// NodeLosses lists what RemoveNode removes, or returns the problems of the removal.
func NodeLosses(ctx context.Context, o session.Selection, name string, force bool, drain node.Drain) ([]string, error) {
	list := func(s *session.Session, state topology.State) ([]string, error) {
		p, err := Of(s)
		if err != nil {
			return nil, err
		}
		n, err := change{s, p, state}.removable(ctx, name, force, drain)
		return []string{nodeLoss(n)}, err
	}
	return session.Get(ctx, o, session.Requirements{Needs: session.Nodes}, list)
}
