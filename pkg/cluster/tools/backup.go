package tools

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// backupOnNode is where a control plane writes a backup before it is copied.
const backupOnNode = host.StateDir + "/cluster.backup"

// Backup makes a backup on the first control plane that runs, with the flags of `backup create`, and moves it to the
// file path of this machine.
func Backup(
	ctx context.Context, options session.Selection, path string, flags []string, emit func(session.HostEvent),
) error {
	scope := session.Requirements{Needs: session.Nodes, Emit: emit}
	return session.Do(ctx, options, scope, func(s *session.Session, state topology.State) error {
		first, running := state.RunningControlPlane("")
		if !running {
			return &step.Problem{
				Name: "control-plane-off", Firm: true, Text: "no control plane of the cluster runs",
				Remedy: "start the cluster first",
			}
		}
		return s.Run(ctx, step.InOrder(step.Always("backup", "back up the cluster on "+first.Name,
			func(ctx context.Context) error { return backup(ctx, s, first.Name, path, flags) })))
	})
}

func backup(ctx context.Context, s *session.Session, node, path string, flags []string) error {
	on := s.Node(node)
	remove := func(ctx context.Context) error { return access.Run(ctx, on, "rm", "-f", backupOnNode) }
	if err := remove(ctx); err != nil { // what an interrupted run has left
		return err
	}
	err := remote.Run(ctx, s, node, append([]string{"backup", "create", backupOnNode}, flags...), nil)
	if err == nil {
		err = receive(ctx, on, node, backupOnNode, path)
	}
	return errors.Join(err, remove(context.WithoutCancel(ctx)))
}
