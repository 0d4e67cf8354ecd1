package tools

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// RunOn runs a command on a node. Its status is a docker.ExitCode.
func RunOn(ctx context.Context, options session.Options, name string, c host.Command) error {
	return onRunning(ctx, options, unlocked, name, func(s *session.Session, n topology.Node) error { return s.Engine.ExecIn(ctx, n.Name, c) })
}

// ShellOn runs a command on a node in a new terminal.
func ShellOn(ctx context.Context, options session.Options, name string, shell docker.Shell) error {
	return onRunning(ctx, options, unlocked, name, func(s *session.Session, n topology.Node) error { return s.Engine.ShellIn(ctx, n.Name, shell) })
}

// unlocked is the scope of the commands that do not change the cluster.
var unlocked = session.Scope{Needs: session.Nodes}

// onRunning calls do with a running node.
func onRunning(ctx context.Context, options session.Options, scope session.Scope, name string,
	do func(*session.Session, topology.Node) error,
) error {
	return session.Do(ctx, options, scope, func(s *session.Session, state topology.State) error {
		n, err := state.Topology(s.Name).PickRunning(name, state)
		if err != nil {
			return err
		}
		return do(s, n)
	})
}
