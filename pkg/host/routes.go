package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// DeleteRoutesVia removes the IPv4 routes to networks inside of within that go
// through another host; a network's own, directly connected routes stay.
func DeleteRoutesVia(within netip.Prefix) error {
	all, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range all {
		if r.Dst == nil || len(r.Gw) == 0 {
			continue
		}
		dst := prefix(r.Dst)
		if dst.Bits() >= within.Bits() && within.Contains(dst.Addr()) {
			errs = append(errs, netlink.RouteDel(&r))
		}
	}
	return errors.Join(errs...)
}

// DeleteRoute removes a route of the main table; one that is not there is no
// error.
func DeleteRoute(r Route) error {
	link, err := netlink.LinkByName(r.Link)
	if err != nil {
		return err
	}
	dst := &net.IPNet{IP: r.Dst.Addr().AsSlice(), Mask: net.CIDRMask(r.Dst.Bits(), r.Dst.Addr().BitLen())}
	err = netlink.RouteDel(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst})
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove the route to %s: %w", r.Dst, err)
	}
	return nil
}

// AddLocalRoute routes a network to loopback, with a source that is an address
// of this host. What the firewall sends elsewhere is routed once more; all else
// ends here.
func AddLocalRoute(network netip.Prefix, source netip.Addr) error {
	route, err := localRoute(network)
	if err != nil {
		return err
	}
	route.Src = source.AsSlice()
	if err := netlink.RouteReplace(&route); err != nil {
		return fmt.Errorf("route %s to loopback: %w", network, err)
	}
	return nil
}

// DeleteLocalRoute takes that route away; one that is not there is no error.
func DeleteLocalRoute(network netip.Prefix) error {
	route, err := localRoute(network)
	if err != nil {
		return err
	}
	if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove the route of %s to loopback: %w", network, err)
	}
	return nil
}

func localRoute(network netip.Prefix) (netlink.Route, error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return netlink.Route{}, err
	}
	dst := &net.IPNet{IP: network.Addr().AsSlice(), Mask: net.CIDRMask(network.Bits(), network.Addr().BitLen())}
	return netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK}, nil
}

// RouteTo returns the interface by which packets to an address leave, and the
// gateway, which is not valid for a directly connected address. ok is false if
// no route leads there.
func RouteTo(addr netip.Addr) (link string, via netip.Addr, ok bool, err error) {
	routes, err := netlink.RouteGet(addr.AsSlice())
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL) {
		return "", via, false, nil // no route, or one that forbids it
	}
	if err != nil || len(routes) == 0 {
		return "", via, false, err
	}
	l, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", via, false, err
	}
	via, _ = netip.AddrFromSlice(routes[0].Gw)
	return l.Attrs().Name, via.Unmap(), true, nil
}
