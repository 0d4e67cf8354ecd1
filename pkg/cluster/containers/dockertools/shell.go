// Package dockertools contains the commands about nodes that need Docker's API: a terminal on a node,
// images from the engine, and the Docker of a node for a docker client of this machine.
package dockertools

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// ShellOn runs a command on a node in a new terminal. Its status is an *access.ExitError.
func ShellOn(ctx context.Context, options session.Selection, name string, shell host.Shell) error {
	scope := session.Requirements{Needs: session.Nodes}
	return onRunning(ctx, options, scope, name, func(c containers.Cluster, n topology.ClusterNode) error {
		return containers.ExitError(n.Name, c.Engine.ShellIn(ctx, n.Name, shell))
	})
}

// onRunning calls do with a running node.
func onRunning(ctx context.Context, options session.Selection, scope session.Requirements, name string,
	do func(containers.Cluster, topology.ClusterNode) error,
) error {
	return containers.Do(ctx, options, scope, func(c containers.Cluster, state topology.State) error {
		n, err := state.Topology(c.Name).PickRunning(name, state)
		if err != nil {
			return err
		}
		return do(c, n)
	})
}
