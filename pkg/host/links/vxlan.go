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

// AddVxlan creates the link, unless it exists. An interface must have the local address.
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
	err = netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: v.ID, VtepDevIndex: under.Attrs().Index, SrcAddr: v.Local.AsSlice()})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add vxlan link %s: %w", v.Name, err)
	}
	return nil
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
	for _, family := range []int{netlink.FAMILY_V4, unix.AF_BRIDGE} {
		entries, err := consistent(func() ([]netlink.Neigh, error) { return netlink.NeighList(link.Attrs().Index, family) })
		if err != nil {
			return n, fmt.Errorf("neighbours of %s: %w", name, err)
		}
		for _, e := range entries {
			addr, ok := netip.AddrFromSlice(e.IP)
			switch {
			case !ok || e.State&netlink.NUD_PERMANENT == 0:
			case family == unix.AF_BRIDGE:
				n.Hosts[e.HardwareAddr.String()] = addr.Unmap()
			default:
				n.MACs[addr.Unmap()] = e.HardwareAddr.String()
			}
		}
	}
	return n, nil
}
