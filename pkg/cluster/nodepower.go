package cluster

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StopNode moves a node's pods away and shuts the node down. With force it shuts
// the node down at once.
func StopNode(ctx context.Context, options Options, name string, force bool, drain node.Drain, emit func(session.Event)) error {
	return onNodes(ctx, options, emit, func(c change) error {
		n, err := c.nodes.Pick(name)
		if err != nil {
			return err
		}
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
	return onNodes(ctx, options, emit, func(c change) error {
		n, err := c.nodes.Pick(name)
		if err != nil {
			return err
		}
		if err := preflight.CanStart(c.nodes, c.state, n); err != nil {
			return err
		}
		boot := c.machine(n).Boot(new(docker.EngineHost))
		setup, subnet := c.options.setup(c.nodes), c.nodes.Subnet()
		return c.session.Run(ctx, step.Plan{
			append(setup.Front(c.session, subnet), boot),
			setup.LocalRegistry(c.session, subnet),
			{apiserver.NewWaiter(c.session).Step(n.Name)},
			{node.Node{API: apiserver.Connect(ctx, c.session, ""), Name: n.Name}.Uncordon()},
		})
	})
}
