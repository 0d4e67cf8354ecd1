package cluster

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// Summary describes a cluster of an engine in a few words.
type Summary struct {
	Name    string `json:"name"`
	Masters int    `json:"masters"`
	Workers int    `json:"workers"`
	Running int    `json:"running"`
	Subnet  string `json:"subnet"`
}

// List returns the clusters of an engine in alphabetical order.
func List(ctx context.Context, options session.Options) (all []Summary, err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		machines, err := s.Engine.Machines(ctx)
		if err != nil {
			return s.NoAnswer(err)
		}
		networks, err := s.Engine.Networks(ctx)
		all = summaries(networks, machines)
		return err
	})
	return all, err
}

func summaries(networks []docker.Network, machines []docker.FoundMachine) []Summary {
	var all []Summary
	for _, n := range networks {
		if n.Cluster == "" || len(n.Subnets) == 0 {
			continue
		}
		s := Summary{Name: n.Cluster, Subnet: n.Subnets[0].String()}
		for _, node := range topology.Observed(s.Name, machines).Nodes() {
			s.count(node)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Summary) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (s *Summary) count(n topology.NodeState) {
	switch n.Role {
	case topology.Master:
		s.Masters++
	case topology.Worker:
		s.Workers++
	}
	if n.Running() {
		s.Running++
	}
}

// HostNode is a node as the engine reports it.
type HostNode struct {
	Name  string        `json:"name"`
	Role  topology.Role `json:"role"`
	Addr  netip.Addr    `json:"address"`
	State string        `json:"state"`
	Image string        `json:"hostImage"` // of its container
}

// NodeNames returns the nodes of a cluster without asking any of them.
func NodeNames(ctx context.Context, options session.Options) (all []HostNode, err error) {
	scope := session.Scope{Needs: session.ACluster}
	err = session.Do(ctx, options, scope, func(_ *session.Session, state topology.State) error {
		for _, n := range state.ByAddress() {
			all = append(all, HostNode{n.Name, n.Role, n.Addr, n.State, n.Image})
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b HostNode) int { return strings.Compare(string(a.Role), string(b.Role)) })
	return all, err
}
