package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// overlaps compares the subnet with the engine's networks, except the cluster's
// own, and with the routes of this machine if the engine runs on it.
func (u Up) overlaps(ctx context.Context, s *session.Session) ([]error, error) {
	networks, err := s.Engine.Networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		if n.Name != s.Name || n.Cluster != s.Name {
			continue
		}
		switch {
		case len(n.Subnets) == 0 || n.Subnets[0] == u.Topology.Subnet():
			return nil, nil // the overlapping route is the cluster's own
		case u.Recreate:
			others := slices.DeleteFunc(networks, func(one docker.Network) bool { return one.Name == s.Name })
			return u.overlapping(s.Engine.Remote(), others, n.Subnets[0])
		}
		return []error{Differs(s.Name, []config.Difference{{
			Given: u.Topology.Subnet().String(), InForce: n.Subnets[0].String(), From: config.Origin{Source: config.FromFlag, Where: "--dind-subnet"},
		}})}, nil
	}
	return u.overlapping(s.Engine.Remote(), networks, netip.Prefix{})
}

// overlapping compares the subnet with all networks and routes, except with the
// subnet gone, which is about to be removed.
func (u Up) overlapping(remote bool, networks []docker.Network, gone netip.Prefix) ([]error, error) {
	var errs []error
	taken := map[string]bool{gone.String(): true}
	for _, n := range networks {
		for _, p := range n.Subnets {
			if p.Overlaps(u.Topology.Subnet()) {
				taken[p.String()] = true
				errs = append(errs, u.overlap(p.String(), "Docker network "+n.Name))
			}
		}
	}
	if remote {
		return errs, nil // the routes of this machine are not those of the engine's machine
	}
	routes, err := links.Routes()
	for _, r := range routes {
		if r.Dst.Bits() > 0 && r.Dst.Overlaps(u.Topology.Subnet()) && !taken[r.Dst.String()] {
			errs = append(errs, u.overlap(r.Dst.String(), "the route over "+r.Link))
		}
	}
	return errs, err
}

func (u Up) overlap(subnet, owner string) error {
	return &step.Problem{
		Name: "cluster-subnet-overlap", Text: fmt.Sprintf("--dind-subnet %s overlaps with %s of %s", u.Topology.Subnet(), subnet, owner),
		Remedy: "use another --dind-subnet",
	}
}
