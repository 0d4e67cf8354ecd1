// Package links reads and changes network interfaces, their addresses, routes and neighbours.
package links

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
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

// Find returns the interface of that name; ok is false if there is none.
func Find(name string) (link Link, ok bool, err error) {
	l, ok, err := byName(name)
	if err != nil || !ok {
		return Link{}, false, wrap("link "+name, err)
	}
	addrs, err := addrsOf(l)
	if err != nil {
		return Link{}, false, fmt.Errorf("addresses of %s: %w", name, err)
	}
	return describe(l, addrs), true, nil
}

// byName returns a link; ok is false if there is none of that name.
func byName(name string) (l netlink.Link, ok bool, err error) {
	l, err = netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, false, nil
	}
	return l, err == nil, err
}

// wrap adds what an error is about.
func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// describe returns the state of a link, with the addresses that belong to it.
func describe(l netlink.Link, addrs []netlink.Addr) Link {
	at := l.Attrs()
	link := Link{
		Name: at.Name, Type: l.Type(), Up: at.Flags&net.FlagUp != 0, MTU: at.MTU, MAC: at.HardwareAddr.String(),
	}
	for _, a := range addrs {
		if a.LinkIndex == at.Index {
			link.Addrs = append(link.Addrs, prefix(a.IPNet))
		}
	}
	return link
}

func prefix(n *net.IPNet) netip.Prefix {
	addr, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// All returns all interfaces.
func All() ([]Link, error) {
	all, err := consistent(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	addrs, err := addrsOf(nil)
	if err != nil {
		return nil, fmt.Errorf("addresses of all links: %w", err)
	}
	var links []Link
	for _, l := range all {
		links = append(links, describe(l, addrs))
	}
	return links, nil
}

// Default returns the interface of the default route. Without one, it returns the only
// interface that is up and has an address, apart from loopback and bridges.
func Default() (Link, error) {
	routes, err := Routes()
	if err != nil {
		return Link{}, err
	}
	for _, r := range routes {
		if r.Dst.Bits() > 0 || r.Link == "" { // it has none if it rejects packets
			continue
		}
		if link, ok, err := Find(r.Link); ok || err != nil {
			return link, err
		}
	}
	found, err := All()
	if err != nil {
		return Link{}, err
	}
	found = slices.DeleteFunc(found, func(l Link) bool {
		return !l.Up || len(l.Addrs) == 0 || l.Name == "lo" || l.Type != "device" && l.Type != "veth"
	})
	if len(found) != 1 {
		return Link{}, fmt.Errorf("no default route, and %d interfaces with an address", len(found))
	}
	return found[0], nil
}

// Delete deletes an interface. A missing interface is not an error.
func Delete(name string) error {
	l, ok, err := byName(name)
	if err != nil || !ok {
		return err
	}
	return netlink.LinkDel(l)
}

// maxReads bounds the reads of a list that changes all the time; each lasts microseconds.
const maxReads = 100

// consistent reads a list from the kernel until no change interrupted the read. The
// kernel sends it in parts, and may omit entries after an addition or a removal
// ([netlink.ErrDumpInterrupted]).
// https://github.com/vishvananda/netlink/blob/v1.3.1/nl/nl_linux.go#L48-L51
func consistent[T any](read func() ([]T, error)) (list []T, err error) {
	for range maxReads {
		if list, err = read(); !errors.Is(err, errInterrupted) {
			return list, err
		}
	}
	return nil, err
}

// addrsOf returns the IPv4 addresses of a link, or of all links.
func addrsOf(l netlink.Link) ([]netlink.Addr, error) {
	return consistent(func() ([]netlink.Addr, error) { return netlink.AddrList(l, unix.AF_INET) })
}

// DeleteInto deletes the veth interfaces whose peers are in the network namespace
// at path. A path that is not a namespace, for example after a boot, has none.
//
// The kernel deletes them with the namespace, but it keeps a namespace while a
// closed connection in it waits for an answer: up to 102 s (tcp_orphan_retries).
func DeleteInto(path string) error {
	namespace, err := os.Open(path)
	if err != nil {
		return err
	}
	defer namespace.Close()
	id, err := netlink.GetNetNsIdByFd(int(namespace.Fd()))
	if errors.Is(err, syscall.EINVAL) || err == nil && id < 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	all, err := consistent(netlink.LinkList)
	if err != nil {
		return err
	}
	into := slices.DeleteFunc(all, func(l netlink.Link) bool { return l.Type() != "veth" || l.Attrs().NetNsID != id })
	return host.Each(into, func(l netlink.Link) error { return Delete(l.Attrs().Name) })
}
