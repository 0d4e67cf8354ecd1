package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Link is the state of a network interface.
type Link struct {
	Name  string
	Type  string // "bridge", "vxlan", "device"
	Up    bool
	MTU   int
	MAC   string         // "0a:4b:0a:00:00:01"; empty if it has none
	Addrs []netip.Prefix // IPv4, the first is the primary one
}

// Route is an IPv4 route of the main table; the default route has Dst 0.0.0.0/0.
type Route struct {
	Dst  netip.Prefix
	Link string
}

// FindLink returns the interface of that name; ok is false if there is none.
func FindLink(name string) (link Link, ok bool, err error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return Link{}, false, nil
	}
	if err != nil {
		return Link{}, false, fmt.Errorf("link %s: %w", name, err)
	}
	link, err = readLink(l)
	return link, err == nil, err
}

func readLink(l netlink.Link) (Link, error) {
	addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
	if err != nil {
		return Link{}, fmt.Errorf("addresses of %s: %w", l.Attrs().Name, err)
	}
	link := Link{Name: l.Attrs().Name, Type: l.Type(), Up: l.Attrs().Flags&net.FlagUp != 0, MTU: l.Attrs().MTU, MAC: l.Attrs().HardwareAddr.String()}
	for _, a := range addrs {
		link.Addrs = append(link.Addrs, prefix(a.IPNet))
	}
	return link, nil
}

func prefix(n *net.IPNet) netip.Prefix {
	addr, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones)
}

// Links returns all interfaces.
func Links() ([]Link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, l := range all {
		link, err := readLink(l)
		if err != nil {
			return nil, err
		}
		links = append(links, link)
	}
	return links, nil
}

// Routes returns the IPv4 routes of the main table.
func Routes() ([]Route, error) {
	all, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	var routes []Route
	for _, r := range all {
		route := Route{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
		if r.Dst != nil {
			route.Dst = prefix(r.Dst)
		}
		if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
			route.Link = l.Attrs().Name
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// DefaultLink returns the interface of the default route. Without a default
// route, it returns the only interface that is up and has an address, apart
// from loopback and bridges; if there are several, it returns an error.
func DefaultLink() (Link, error) {
	routes, err := Routes()
	if err != nil {
		return Link{}, err
	}
	for _, r := range routes {
		if r.Dst.Bits() == 0 {
			link, _, err := FindLink(r.Link)
			return link, err
		}
	}
	return onlyLink()
}

func onlyLink() (Link, error) {
	links, err := Links()
	if err != nil {
		return Link{}, err
	}
	var found []Link
	for _, l := range links {
		if l.Up && len(l.Addrs) > 0 && l.Name != "lo" && (l.Type == "device" || l.Type == "veth") {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		return Link{}, fmt.Errorf("no default route, and %d interfaces with an address", len(found))
	}
	return found[0], nil
}

// DeleteLink deletes an interface. A missing interface is not an error.
func DeleteLink(name string) error {
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(l)
}

// SetBridge creates or changes a bridge: it is up and has the MTU and exactly
// one IPv4 address.
func SetBridge(name string, addr netip.Prefix, mtu int) error {
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		l, err = addBridge(name)
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

func addBridge(name string) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return nil, err
	}
	return netlink.LinkByName(name)
}

func setAddr(l netlink.Link, want netip.Prefix) error {
	goal := &netlink.Addr{IPNet: &net.IPNet{IP: want.Addr().AsSlice(), Mask: net.CIDRMask(want.Bits(), 32)}}
	if err := netlink.AddrReplace(l, goal); err != nil {
		return err
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if prefix(a.IPNet) == want {
			continue
		}
		if err := netlink.AddrDel(l, &a); err != nil {
			return err
		}
	}
	return nil
}
