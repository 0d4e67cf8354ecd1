package tools

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// RunOn runs a command on a node. Its status is an *access.ExitError.
func RunOn(ctx context.Context, options session.Selection, name string, c host.Command) error {
	return session.OnRunning(ctx, options, unlocked, name, func(s *session.Session, n topology.ClusterNode) error {
		return s.Node(n.Name).Exec(ctx, c)
	})
}

// unlocked is the scope of the commands that do not change the cluster.
var unlocked = session.Requirements{Needs: session.Nodes}
