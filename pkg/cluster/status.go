package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Summary describes a cluster of a provider in a few words.
type Summary struct {
	Name          string `json:"name"`
	ControlPlanes int    `json:"masters"`
	Workers       int    `json:"workers"`
	Running       int    `json:"running"`
	Subnet        string `json:"subnet"`
}

// List returns the clusters of a provider in alphabetical order.
func List(ctx context.Context, options session.Selection) ([]Summary, error) {
	s, err := session.Open(options, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	clusters, err := s.Provider.Clusters(ctx)
	if err != nil {
		return nil, s.Provider.NoAnswer(err)
	}
	return summaries(clusters), nil
}

func summaries(clusters []provider.ClusterInfo) (all []Summary) {
	for _, c := range clusters {
		if c.Remains {
			continue
		}
		s := Summary{Name: c.Name, Running: len(c.Nodes.Running())}
		if c.Subnet.IsValid() {
			s.Subnet = c.Subnet.String()
		}
		for _, node := range c.Nodes.Nodes() {
			switch node.Role {
			case topology.ControlPlane:
				s.ControlPlanes++
			case topology.Worker:
				s.Workers++
			}
		}
		all = append(all, s)
	}
	return all
}

// NodeSummary is a node as the provider reports it.
type NodeSummary struct {
	Name  string     `json:"name"`
	Role  string     `json:"role"` // as Kubernetes names it
	Addr  netip.Addr `json:"address"`
	State string     `json:"state"`
	Image string     `json:"hostImage"` // of its container
}

func roleName(role topology.Role) string {
	if role == topology.ControlPlane {
		return config.AliasControlPlane
	}
	return string(role)
}

// NodeNames returns the nodes of a cluster without asking any of them.
func NodeNames(ctx context.Context, options session.Selection) ([]NodeSummary, error) {
	scope := session.Requirements{Needs: session.ACluster}
	return session.Get(ctx, options, scope,
		func(_ *session.Session, state topology.State) (all []NodeSummary, err error) {
			for _, n := range state.ByAddress() {
				all = append(all, NodeSummary{n.Name, roleName(n.Role), n.Addr, n.State, n.Image})
			}
			slices.SortStableFunc(all, func(a, b NodeSummary) int { return cmp.Compare(a.Role, b.Role) })
			return all, nil
		})
}

// NodeAddr returns the address of a node.
func NodeAddr(ctx context.Context, options session.Selection, name string) (netip.Addr, error) {
	scope := session.Requirements{Needs: session.Nodes}
	return session.Get(ctx, options, scope, func(s *session.Session, state topology.State) (netip.Addr, error) {
		n, err := state.Topology(s.Name).Pick(name)
		return n.Addr, err
	})
}

// Status returns the hosts of a cluster in the order of their addresses and, for
// each running kube-bootstrap host, its own report. With a name, it returns only the
// host of this node.
func Status(ctx context.Context, options session.Selection, name string) ([]remote.HostStatus, error) {
	scope := session.Requirements{Needs: session.Nodes}
	return session.Get(ctx, options, scope,
		func(s *session.Session, state topology.State) ([]remote.HostStatus, error) {
			if name == "" {
				return remote.Statuses(ctx, s, state.ByAddress()), nil
			}
			n, err := state.Topology(s.Name).Pick(name)
			if err != nil {
				return nil, err
			}
			one, _ := state.Node(n.Name)
			return []remote.HostStatus{remote.Status(ctx, s, one)}, nil
		})
}

// Recorded returns the settings that a cluster was created with. For a cluster
// that is not finished it returns the known part, and nil if no cluster exists.
func Recorded(ctx context.Context, options session.Selection) (*session.Record, error) {
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) (*session.Record, error) {
			r, err := s.Record(ctx)
			if err != nil || r.Removing() {
				return r, err
			}
			notes, err := s.Notes().All(ctx)
			if err != nil {
				return nil, err
			}
			// the next run continues the restore, so the snapshot's settings apply
			if name := notes[session.RestoringNote]; name != "" {
				if r, err = snapshot.Settings(ctx, s, name); err != nil {
					return nil, err
				}
			}
			if r == nil {
				return unfinished(ctx, s)
			}
			r.Bundle = s.Bundle()
			return r, nil
		})
}

// unfinished returns the record of a cluster that has never been up: only its subnet is known.
func unfinished(ctx context.Context, s *session.Session) (*session.Record, error) {
	all, err := s.Provider.Clusters(ctx)
	at := slices.IndexFunc(all, func(c provider.ClusterInfo) bool { return c.Name == s.Name && c.Subnet.IsValid() })
	if err != nil || at < 0 {
		return nil, err
	}
	given := map[string]string{"dindSubnet": all[at].Subnet.String()}
	return &session.Record{Settings: config.ClusterRecord{Given: given}}, nil
}

// Exists reports whether any part of a cluster exists.
func Exists(ctx context.Context, options session.Selection) (bool, error) {
	return session.Get(ctx, options, session.Requirements{},
		func(s *session.Session, _ topology.State) (bool, error) { return s.Exists(ctx) })
}
