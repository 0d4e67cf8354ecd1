package flannel

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// view is the state that the overlay of this host must match.
type view struct {
	backend  string
	publicIP netip.Addr // of this host
	own      subnet.Lease
	leases   []hostLease // of all hosts
}

func (v view) diff() (step.Diff, error) {
	diff, err := v.linkDiff()
	if err != nil || len(diff) > 0 {
		return diff, err
	}
	routes, err := v.routesDiff()
	if err != nil {
		return nil, err
	}
	stale, err := v.stale()
	for _, r := range stale {
		diff = append(diff, fmt.Sprintf("remove the route to %s, which no host has leased", r.Dst))
	}
	return append(diff, routes...), err
}

// stale returns the overlay's routes to subnets that no host has leased.
// flanneld removes such a route only if the lease ends while it runs.
func (v view) stale() (stale []links.Route, err error) {
	routes, err := links.Routes()
	for _, r := range routes {
		inside := r.Dst.Bits() > v.own.Network.Bits() && v.own.Network.Contains(r.Dst.Addr())
		leased := slices.ContainsFunc(v.leases, func(l hostLease) bool { return l.subnet.Overlaps(r.Dst) })
		if r.Link != "" && r.Link == Link(v.backend) && inside && !leased {
			stale = append(stale, r)
		}
	}
	return stale, err
}

func (v view) removeStale() error {
	stale, err := v.stale()
	if err != nil {
		return err
	}
	return host.Each(stale, links.DeleteRoute)
}

// linkDiff compares the overlay link with this host's lease.
func (v view) linkDiff() (diff step.Diff, err error) {
	at := slices.IndexFunc(v.leases, func(l hostLease) bool {
		return l.key == LeaseKey(v.own.Subnet) && l.host == v.publicIP
	})
	if at < 0 {
		diff = append(diff, fmt.Sprintf("lease the subnet %s in etcd", v.own.Subnet.Masked()))
	}
	name := Link(v.backend)
	if name == "" {
		return diff, nil
	}
	link, ok, err := links.Find(name)
	if err != nil || !ok {
		return append(diff, "create the link "+name), err
	}
	address := v.own.Subnet.Masked().Addr()
	if !slices.ContainsFunc(link.Addrs, func(p netip.Prefix) bool { return p.Addr() == address }) {
		diff = append(diff, fmt.Sprintf("give %s the address %s", name, address))
	}
	if !link.Up {
		diff = append(diff, "set "+name+" up")
	}
	if v.backend == "vxlan" {
		diff = append(diff, v.macDiff(link, at)...)
	}
	return diff, nil
}

func (v view) macDiff(link links.Link, at int) step.Diff {
	want := vtepMAC(v.publicIP)
	if want != "" && link.MAC != want {
		return step.Diff{fmt.Sprintf("give %s the MAC address %s (now %s)", link.Name, want, link.MAC)}
	}
	if at >= 0 && v.leases[at].mac != link.MAC {
		return step.Diff{fmt.Sprintf("publish the MAC address %s of %s (published: %s)", link.MAC, link.Name,
			v.leases[at].mac)}
	}
	return nil
}

// routesDiff compares the kernel's route to each subnet with the leases.
func (v view) routesDiff() (diff step.Diff, err error) {
	neighbours, err := v.neighbours()
	if err != nil {
		return nil, err
	}
	names := links.Names{}
	for _, l := range v.leases {
		if l.host == v.publicIP || l.backend != v.backend {
			continue // flanneld skips leases of other backends too
		}
		routed, err := v.routed(names, l)
		if err != nil {
			return nil, err
		}
		if !routed {
			diff = append(diff, fmt.Sprintf("route %s to %s", l.subnet, l.host))
		} else if v.backend == "vxlan" &&
			(neighbours.MACs[l.subnet.Addr()] != l.mac || neighbours.Hosts[l.mac] != l.host) {
			diff = append(diff, fmt.Sprintf("add %s at %s as a neighbour of %s", l.mac, l.host, Link(v.backend)))
		}
	}
	return diff, nil
}

func (v view) neighbours() (links.Neighbours, error) {
	if v.backend != "vxlan" {
		return links.Neighbours{}, nil
	}
	return links.PermanentNeighbours(Link(v.backend))
}

// routed reports whether packets to a host's subnet leave by the overlay
// link, or for host-gw by the gateway l.host.
func (v view) routed(names links.Names, l hostLease) (bool, error) {
	link, via, ok, err := names.RouteTo(l.subnet.Addr().Next())
	if err != nil || !ok {
		return false, err
	}
	if name := Link(v.backend); name != "" {
		return link == name, nil
	}
	return via == l.host, nil
}
