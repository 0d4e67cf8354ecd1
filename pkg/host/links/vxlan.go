package links

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Vxlan is a VXLAN link without learning: its neighbours must be added.
type Vxlan struct {
	Name  string
	ID    int
	Local netip.Addr // of the underlying interface
	MAC   string
}

// vxlanOverhead is the size in bytes of the headers that VXLAN adds to each packet.
const vxlanOverhead = 50

// AddVxlan creates the link, or replaces a link of another kind, with another identifier or
// below another address. An interface must have the local address.
func AddVxlan(v Vxlan) error {
	mac, err := net.ParseMAC(v.MAC)
	if err != nil {
		return err
	}
	under, err := linkOf(v.Local)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = v.Name, mac, under.Attrs().MTU-vxlanOverhead
	wanted := &netlink.Vxlan{
		LinkAttrs: attrs, VxlanId: v.ID, VtepDevIndex: under.Attrs().Index, SrcAddr: v.Local.AsSlice(),
	}
	err = netlink.LinkAdd(wanted)
	if errors.Is(err, unix.EEXIST) {
		err = replaceUnlike(wanted)
	}
	return wrap("add vxlan link "+v.Name, err)
}

// replaceUnlike replaces the link of that name, unless it is like the wanted one.
func replaceUnlike(wanted *netlink.Vxlan) error {
	now, ok, err := byName(wanted.Name)
	if err != nil || !ok || like(now, wanted) {
		return err
	}
	if err := netlink.LinkDel(now); err != nil {
		return err
	}
	return netlink.LinkAdd(wanted)
}

// like reports whether a link sends the same packets. One without an address chooses it itself.
func like(link netlink.Link, wanted *netlink.Vxlan) bool {
	now, ok := link.(*netlink.Vxlan)
	return ok && now.VxlanId == wanted.VxlanId && (now.VtepDevIndex == 0 || now.VtepDevIndex == wanted.VtepDevIndex) &&
		(len(now.SrcAddr) == 0 || now.SrcAddr.Equal(wanted.SrcAddr))
}

// linkOf returns the interface that has an address.
func linkOf(addr netip.Addr) (netlink.Link, error) {
	addrs, err := addrsOf(nil)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if prefix(a.IPNet).Addr() == addr {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	return nil, fmt.Errorf("no interface has the address %s", addr)
}

// SetMAC changes the MAC address of a link.
func SetMAC(name, mac string) error {
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetHardwareAddr(link, hardware)
}

// Neighbours are the permanent neighbour entries of a link.
type Neighbours struct {
	MACs  map[netip.Addr]string // by the IPv4 address of the neighbour
	Hosts map[string]netip.Addr // forwarding database of a VXLAN link: host by MAC address
}

// PermanentNeighbours returns the permanent neighbour entries of a link.
func PermanentNeighbours(name string) (Neighbours, error) {
	n := Neighbours{MACs: map[netip.Addr]string{}, Hosts: map[string]netip.Addr{}}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return n, err
	}
	for _, family := range []int{unix.AF_INET, bridgeFamily} {
		entries, err := consistent(func() ([]netlink.Neigh, error) {
			return netlink.NeighList(link.Attrs().Index, family)
		})
		if err != nil {
			return n, fmt.Errorf("neighbours of %s: %w", name, err)
		}
		for _, e := range entries {
			addr, ok := netip.AddrFromSlice(e.IP)
			switch {
			case !ok || e.State&permanent == 0:
			case family == bridgeFamily:
				n.Hosts[e.HardwareAddr.String()] = addr.Unmap()
			default:
				n.MACs[addr.Unmap()] = e.HardwareAddr.String()
			}
		}
	}
	return n, nil
}
