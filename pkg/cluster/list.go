package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// Summary tells in a few words what cluster there is on an engine.
type Summary struct {
	Name    string `json:"name"`
	Masters int    `json:"masters"`
	Workers int    `json:"workers"`
	Running int    `json:"running"`
	Subnet  string `json:"subnet"`
}

// List tells which clusters an engine has.
func List(ctx context.Context, options Options) ([]Summary, error) {
	f, err := open(options, nil)
	if err != nil {
		return nil, err
	}
	defer f.docker.Close()
	machines, err := f.docker.Machines(ctx)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	networks, err := f.docker.Networks(ctx)
	if err != nil {
		return nil, err
	}
	return summaries(networks, machines), nil
}

func summaries(networks []docker.Network, machines []docker.FoundMachine) []Summary {
	var all []Summary
	for _, n := range networks {
		if n.Fleet == "" || len(n.Subnets) == 0 {
			continue
		}
		s := Summary{Name: n.Fleet, Subnet: n.Subnets[0].String()}
		for _, m := range machines {
			if m.Fleet == s.Name {
				s.count(m)
			}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Summary) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (s *Summary) count(m docker.FoundMachine) {
	switch specOf(m).Role {
	case Master:
		s.Masters++
	case Worker:
		s.Workers++
	}
	if m.State == "running" {
		s.Running++
	}
}

// HostNode is a node as the engine sees it.
type HostNode struct {
	Name  string     `json:"name"`
	Role  Role       `json:"role"`
	Addr  netip.Addr `json:"address"`
	State string     `json:"state"`
}

// NodeNames tells which nodes a cluster has, without asking any of them.
func NodeNames(ctx context.Context, options Options) ([]HostNode, error) {
	f, err := open(options, nil)
	if err != nil {
		return nil, err
	}
	defer f.docker.Close()
	found, err := f.found(ctx)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	if len(found) == 0 {
		return nil, f.mustExist(ctx)
	}
	var all []HostNode
	for _, m := range found {
		all = append(all, HostNode{m.Name, specOf(m).Role, m.Addr, m.State})
	}
	slices.SortFunc(all, func(a, b HostNode) int {
		return cmp.Or(strings.Compare(string(a.Role), string(b.Role)), a.Addr.Compare(b.Addr))
	})
	return all, nil
}
