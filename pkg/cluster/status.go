package cluster

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/localregistry"
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

// LocalRegistry is the observed registry of a cluster.
type LocalRegistry struct {
	Address   string `json:"address"` // in the names of images
	Container string `json:"container"`
	Running   bool   `json:"running"`
}

// RegistryStatus returns the local registry that a cluster should have; nil for
// none.
func RegistryStatus(ctx context.Context, options session.Options) (r *LocalRegistry, err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		record, err := s.UpRecord(ctx)
		if err != nil || record == nil {
			return err
		}
		port := testhost.RegistryOf(record.Settings).Port
		if port == 0 {
			return nil
		}
		name := testhost.RegistryName(s.Name)
		now, _, err := s.Cluster().Attached(ctx, name)
		r = &LocalRegistry{localregistry.Name(port), name, now.Running}
		return err
	})
	return r, err
}
