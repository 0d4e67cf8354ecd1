package host

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
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
