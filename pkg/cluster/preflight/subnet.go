package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
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

// neighbour is a network that the engine's machine already reaches.
type neighbour struct {
	subnet netip.Prefix
	owner  string
}

// overlapping compares the subnet with all networks and routes, except with the
// subnet gone, which is about to be removed.
func (u Up) overlapping(remote bool, networks []docker.Network, gone netip.Prefix) ([]error, error) {
	all := ofDocker(networks)
	if !remote { // otherwise the routes of this machine are not those of the engine's machine
		routes, err := links.Routes()
		if err != nil {
			return nil, err
		}
		all = append(all, ofRoutes(routes, append(all, neighbour{subnet: gone}))...)
	}
	var errs []error
	for _, n := range all {
		if n.subnet.Overlaps(u.Topology.Subnet()) {
			errs = append(errs, u.overlap(n, all))
		}
	}
	return errs, nil
}

func ofDocker(networks []docker.Network) (all []neighbour) {
	for _, n := range networks {
		for _, subnet := range n.Subnets {
			all = append(all, neighbour{subnet, "Docker network " + n.Name})
		}
	}
	return all
}

// ofRoutes returns the networks of routes, except for default routes and for routes
// to networks that are known.
func ofRoutes(routes []links.Route, known []neighbour) (all []neighbour) {
	for _, r := range routes {
		if r.Dst.Bits() > 0 && !slices.ContainsFunc(known, func(n neighbour) bool { return n.subnet == r.Dst }) {
			all = append(all, neighbour{r.Dst, "the route over " + r.Link})
		}
	}
	return all
}

func (u Up) overlap(with neighbour, all []neighbour) error {
	remedy := "use another --dind-subnet"
	if free, found := freeSubnet(all); found {
		remedy += ", such as " + free.String()
	}
	return &step.Problem{
		Name: "cluster-subnet-overlap", Text: fmt.Sprintf("--dind-subnet %s overlaps with %s of %s", u.Topology.Subnet(), with.subnet, with.owner),
		Remedy: remedy,
	}
}

// freeSubnet returns the first network after the default one that overlaps with no
// other.
func freeSubnet(all []neighbour) (netip.Prefix, bool) {
	base := topology.DefaultSubnet.Addr().As4()
	for second := int(base[1]); second <= 255; second++ {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{base[0], byte(second)}), topology.DefaultSubnet.Bits())
		if !slices.ContainsFunc(all, func(n neighbour) bool { return n.subnet.Overlaps(subnet) }) {
			return subnet, true
		}
	}
	return netip.Prefix{}, false
}
