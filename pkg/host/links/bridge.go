package links

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// BridgePorts reports for each link whether it is a port of the bridge; ok is false
// if the bridge does not exist.
func BridgePorts(bridge string) (ports map[string]bool, ok bool, err error) {
	b, ok, err := byName(bridge)
	if err != nil || !ok {
		return nil, false, err
	}
	all, err := consistent(netlink.LinkList)
	ports = map[string]bool{}
	for _, l := range all {
		ports[l.Attrs().Name] = l.Attrs().MasterIndex == b.Attrs().Index
	}
	return ports, err == nil, err
}

// AttachToBridge makes a link a port of a bridge, in hairpin mode: packets may leave by
// the port they came in by, as when a pod reaches itself through a Service.
func AttachToBridge(name, bridge string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	b, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", bridge, err)
	}
	if err := netlink.LinkSetMaster(link, b); err != nil {
		return fmt.Errorf("attach %s to %s: %w", name, bridge, err)
	}
	return errors.Join(netlink.LinkSetHairpin(link, true), netlink.LinkSetUp(link))
}

// SetBridge creates or changes a bridge: it is up and has the MTU and one IPv4 address.
func SetBridge(name string, addr netip.Prefix, mtu int) error {
	l, ok, err := byName(name)
	if err == nil && !ok {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		l = &netlink.Bridge{LinkAttrs: attrs}
		err = netlink.LinkAdd(l) // also sets the index in l
	}
	if err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	if err := setAddr(l, addr); err != nil {
		return fmt.Errorf("address of %s: %w", name, err)
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("mtu of %s: %w", name, err)
	}
	return netlink.LinkSetUp(l)
}

func setAddr(l netlink.Link, want netip.Prefix) error {
	goal := &netlink.Addr{IPNet: ipNet(want)}
	if err := netlink.AddrReplace(l, goal); err != nil {
		return err
	}
	addrs, err := addrsOf(l)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(addrs, func(a netlink.Addr) bool { return prefix(a.IPNet) == want })
	return host.Each(others, func(a netlink.Addr) error { return netlink.AddrDel(l, &a) })
}
