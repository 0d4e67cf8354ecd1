package requirements

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// overlaps compares the subnet with the engine's networks, except the cluster's
// own, and with the routes of this machine if the engine runs on it.
func (c checks) overlaps(ctx context.Context) ([]error, error) {
	networks, err := c.Cluster.Engine.Networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		if n.Name != c.Cluster.Name || n.Cluster != c.Cluster.Name {
			continue
		}
		switch {
		case len(n.Subnets) == 0 || n.Subnets[0] == c.Topology.Subnet():
			return nil, nil // the overlapping route is the cluster's own
		case c.recreate:
			others := slices.DeleteFunc(networks, func(one docker.Network) bool { return one.Name == c.Cluster.Name })
			return c.overlapping(others, n.Subnets[0])
		}
		return []error{preflight.Differs(c.Cluster.Name, []config.Difference{{
			Given: c.Topology.Subnet().String(), InForce: n.Subnets[0].String(),
			From: config.Origin{Source: config.FromFlag, Where: "--dind-subnet"},
		}})}, nil
	}
	return c.overlapping(networks, netip.Prefix{})
}

// neighbour is a network that the engine's machine already reaches.
type neighbour struct {
	subnet netip.Prefix
	owner  string
}

// neighbours returns all networks and routes except gone, which is removed first.
func (e engineMachine) neighbours(networks []docker.Network, gone netip.Prefix) ([]neighbour, error) {
	all := ofDocker(networks)
	if e.remote { // the routes of this machine are not those of the engine's machine
		return all, nil
	}
	routes, err := links.Routes()
	return append(all, ofRoutes(routes, append(all, neighbour{subnet: gone}))...), err
}

// overlapping compares the subnet with all networks and routes, except gone, which is removed first.
func (c checks) overlapping(networks []docker.Network, gone netip.Prefix) ([]error, error) {
	all, err := c.engine.neighbours(networks, gone)
	if err != nil {
		return nil, err
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
	for free := range freeSubnets(all) {
		remedy += ", such as " + free.String()
		break
	}
	return &step.Problem{
		Name:   "cluster-subnet-overlap",
		Text:   fmt.Sprintf("--dind-subnet %s overlaps with %s of %s", c.Topology.Subnet(), with.subnet, with.owner),
		Remedy: remedy,
	}
}

// FreeSubnet returns a network for a new cluster that overlaps with no network of the
// engine and with no route. Until the caller calls
// release, no other run of this user chooses it: the run may build images for minutes before it
// creates the network.
func FreeSubnet(ctx context.Context, c containers.Cluster) (free netip.Prefix, release func(), err error) {
	engine, err := machineOf(ctx, c)
	if err != nil {
		return netip.Prefix{}, nil, err
	}
	networks, err := c.Engine.Networks(ctx)
	if err != nil {
		return netip.Prefix{}, nil, c.Session.Provider.NoAnswer(err)
	}
	all, err := engine.neighbours(networks, netip.Prefix{})
	if err != nil {
		return netip.Prefix{}, nil, err
	}
	return reserved(ctx, c.Session.CacheDir, freeSubnets(all))
}

// reserved returns the first subnet that no other run has reserved in dir.
func reserved(
	ctx context.Context, dir string, subnets iter.Seq[netip.Prefix],
) (free netip.Prefix, release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return netip.Prefix{}, nil, err
	}
	for subnet := range subnets {
		release, err := host.Lock(ctx, filepath.Join(dir, ".subnet-"+subnet.Addr().String()+".lock"))
		if !errors.Is(err, host.ErrLocked) {
			return subnet, release, err
		}
	}
	return netip.Prefix{}, nil, &step.Problem{
		Name: "cluster-subnet-overlap", Text: "each network from " + topology.DefaultSubnet.String() +
			" to 10.255.0.0/16 overlaps with a network or a route of the engine's machine",
		Remedy: "choose a network with --dind-subnet",
	}
}

// freeSubnets returns the networks from the default network on that overlap with no
// other network.
func freeSubnets(all []neighbour) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		base := topology.DefaultSubnet.Addr().As4()
		for second := int(base[1]); second <= 255; second++ {
			subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{base[0], byte(second)}), topology.DefaultSubnet.Bits())
			taken := slices.ContainsFunc(all, func(n neighbour) bool { return n.subnet.Overlaps(subnet) })
			if !taken && !yield(subnet) {
				return
			}
		}
	}
}

// Balanced returns the problem that a Service of type LoadBalancer could get a container's address.
func Balanced(t topology.Topology, ranges []addresses.Range) error {
	owners := map[netip.Addr]string{
		topology.LoadBalancerAddr(t.Subnet()): "the API server",
		topology.RegistryAddr(t.Subnet()):     "the local registry",
	}
	for _, n := range t.Nodes() {
		owners[n.Addr] = "node " + n.Name
	}
	for _, addr := range slices.SortedFunc(maps.Keys(owners), netip.Addr.Compare) {
		if i := slices.IndexFunc(ranges, func(r addresses.Range) bool { return r.Contains(addr) }); i >= 0 {
			return &step.Problem{Name: "load-balancer-addresses",
				Text: fmt.Sprintf("loadBalancerAddresses: %s has the address of %s, %s",
					ranges[i], owners[addr], addr),
				Remedy: "choose addresses that no node gets, or a larger --dind-subnet"}
		}
	}
	return nil
}
