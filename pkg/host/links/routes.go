package links

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Route is an IPv4 route of the main table; the default route has Dst 0.0.0.0/0.
type Route struct {
	Dst  netip.Prefix
	Link string // of the first next hop; empty for a route that rejects packets
}

// Routes returns the IPv4 routes of the main table.
func Routes() ([]Route, error) {
	all, err := consistent(mainTable)
	var routes []Route
	names := Names{}
	for _, r := range all {
		route := Route{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
		if r.Dst != nil {
			route.Dst = prefix(r.Dst)
		}
		index := r.LinkIndex
		if len(r.MultiPath) > 0 {
			index = r.MultiPath[0].LinkIndex
		}
		route.Link, _ = names.of(index) // the link may have been deleted meanwhile
		routes = append(routes, route)
	}
	return routes, err
}

func mainTable() ([]netlink.Route, error) {
	return netlink.RouteList(nil, unix.AF_INET)
}

// DeleteRoutesVia deletes the IPv4 routes to networks inside of within that have a gateway.
func DeleteRoutesVia(within netip.Prefix) error {
	all, err := consistent(mainTable)
	via := slices.DeleteFunc(all, func(r netlink.Route) bool {
		return r.Dst == nil || len(r.Gw) == 0 || prefix(r.Dst).Bits() < within.Bits() ||
			!within.Contains(prefix(r.Dst).Addr())
	})
	return errors.Join(err, host.Each(via, func(r netlink.Route) error { return netlink.RouteDel(&r) }))
}

// DeleteRoute deletes a route of the main table. A missing route is not an error.
func DeleteRoute(r Route) error {
	// scopeNowhere stands for routes of all scopes, such as routes without a gateway.
	route, err := routeBy(r.Link, r.Dst, scopeNowhere)
	if err != nil {
		return err
	}
	if err := netlink.RouteDel(route); !errors.Is(err, unix.ESRCH) {
		return wrap("remove the route to "+r.Dst.String(), err)
	}
	return nil
}

// AddLocalRoute routes a network to loopback. The firewall can then redirect the packet to
// a backend, and the kernel routes the redirected packet again. All other packets to the
// network end at this host.
func AddLocalRoute(network netip.Prefix, source netip.Addr) error {
	route, err := routeBy("lo", network, scopeLink)
	if err != nil {
		return err
	}
	route.Src = source.AsSlice()
	return wrap("route "+network.String()+" to loopback", netlink.RouteReplace(route))
}

func routeBy(link string, to netip.Prefix, scope netlink.Scope) (*netlink.Route, error) {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return nil, err
	}
	return &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(to), Scope: scope}, nil
}

// Names contains the names of interfaces by index: 1,000 routes leave by few interfaces.
type Names map[int]string

// RouteTo returns the outgoing interface of packets to an address, and the gateway, the
// zero Addr for a directly connected address. ok is false if no route exists.
func (n Names) RouteTo(addr netip.Addr) (link string, via netip.Addr, ok bool, err error) {
	routes, err := netlink.RouteGet(addr.AsSlice())
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.EINVAL) {
		return "", via, false, nil // no route, or a route of type unreachable or prohibit
	}
	if err != nil || len(routes) == 0 {
		return "", via, false, err
	}
	if link, err = n.of(routes[0].LinkIndex); err != nil {
		return "", via, false, err
	}
	via, _ = netip.AddrFromSlice(routes[0].Gw)
	return link, via.Unmap(), true, nil
}

func (n Names) of(index int) (string, error) {
	if name, known := n[index]; known {
		return name, nil
	}
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return "", err
	}
	n[index] = l.Attrs().Name
	return n[index], nil
}
