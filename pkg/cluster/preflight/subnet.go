package preflight

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// overlaps compares the subnet with the engine's networks, except the cluster's
// own, and with the routes of this machine if the engine runs on it.
func (c checks) overlaps(ctx context.Context) ([]error, error) {
	networks, err := c.Session.Engine.Networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		if n.Name != c.Session.Name || n.Cluster != c.Session.Name {
			continue
		}
		switch {
		case len(n.Subnets) == 0 || n.Subnets[0] == c.Topology.Subnet():
			return nil, nil // the overlapping route is the cluster's own
		case c.recreate:
			others := slices.DeleteFunc(networks, func(one docker.Network) bool { return one.Name == c.Session.Name })
			return c.overlapping(others, n.Subnets[0])
		}
		return []error{Differs(c.Session.Name, []config.Difference{{
			Given: c.Topology.Subnet().String(), InForce: n.Subnets[0].String(), From: config.Origin{Source: config.FromFlag, Where: "--dind-subnet"},
		}})}, nil
	}
	return c.overlapping(networks, netip.Prefix{})
}

// neighbour is a network that the engine's machine already reaches.
type neighbour struct {
	subnet netip.Prefix
	owner  string
}

// overlapping compares the subnet with all networks and routes, except gone, which is removed first.
func (c checks) overlapping(networks []docker.Network, gone netip.Prefix) ([]error, error) {
	all := ofDocker(networks)
	if !c.engine.remote { // otherwise the routes of this machine are not those of the engine's machine
		routes, err := links.Routes()
		if err != nil {
			return nil, err
		}
		all = append(all, ofRoutes(routes, append(all, neighbour{subnet: gone}))...)
	}
	var errs []error
	for _, n := range all {
		if n.subnet.Overlaps(c.Topology.Subnet()) {
			errs = append(errs, c.overlap(n, all))
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

// ofRoutes returns the networks of routes, without default routes and known networks.
func ofRoutes(routes []links.Route, known []neighbour) (all []neighbour) {
	for _, r := range routes {
		if r.Dst.Bits() > 0 && !slices.ContainsFunc(known, func(n neighbour) bool { return n.subnet == r.Dst }) {
			all = append(all, neighbour{r.Dst, "the route over " + r.Link})
		}
	}
	return all
}

func (c checks) overlap(with neighbour, all []neighbour) error {
	remedy := "use another --dind-subnet"
	if free, found := freeSubnet(all); found {
		remedy += ", such as " + free.String()
	}
	return &step.Problem{
		Name: "cluster-subnet-overlap", Text: fmt.Sprintf("--dind-subnet %s overlaps with %s of %s", c.Topology.Subnet(), with.subnet, with.owner),
		Remedy: remedy,
	}
}

// freeSubnet returns the first network from the default network on that overlaps with no
// other network.
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

// Balanced returns the problem that a Service of type LoadBalancer could get a container's address.
func Balanced(t topology.Topology, ranges []addresses.Range) error {
	owners := map[netip.Addr]string{
		topology.FrontAddr(t.Subnet()):    "the API server",
		topology.RegistryAddr(t.Subnet()): "the local registry",
	}
	for _, n := range t.Nodes() {
		owners[n.Addr] = "node " + n.Name
	}
	for _, addr := range slices.SortedFunc(maps.Keys(owners), netip.Addr.Compare) {
		if i := slices.IndexFunc(ranges, func(r addresses.Range) bool { return r.Contains(addr) }); i >= 0 {
			return &step.Problem{Name: "load-balancer-addresses",
				Text:   fmt.Sprintf("loadBalancerAddresses: %s has the address of %s, %s", ranges[i], owners[addr], addr),
				Remedy: "choose addresses that no node gets, or a larger --dind-subnet"}
		}
	}
	return nil
}
