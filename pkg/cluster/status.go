package cluster

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// Status returns the hosts of a cluster in the order of their addresses and, for
// each running kube-bootstrap host, its own report. Names in only restrict the
// result to these hosts.
func Status(ctx context.Context, options session.Options, only ...string) (all []remote.HostStatus, err error) {
	err = session.Do(ctx, options, session.Scope{Needs: session.Nodes}, func(s *session.Session, state topology.State) error {
		nodes := state.ByAddress()
		for _, name := range only {
			n, err := state.Topology(s.Name).Pick(name)
			if err != nil {
				return err
			}
			one, _ := state.Node(n.Name)
			nodes = []topology.NodeState{one}
		}
		all = remote.Statuses(ctx, s, nodes)
		return nil
	})
	return all, err
}
