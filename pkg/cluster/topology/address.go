package topology

import "net/netip"

const (
	// firstIndex is the index of the first control plane. The engine has the address before it.
	firstIndex = 2
	// masterAddrs is the number of addresses that are reserved for control planes,
	// the front and the local registry, so that a worker keeps its address when a
	// control plane joins.
	masterAddrs = 8
	// frontIndex is the index of the front's address, between the control planes
	// and the workers. The address of the local registry is before it: there are
	// fewer control planes than addresses for them.
	frontIndex    = 1 + masterAddrs
	registryIndex = frontIndex - 1
)

// FrontAddr returns the address of the front in a subnet.
func FrontAddr(subnet netip.Prefix) netip.Addr { return addrAt(subnet, frontIndex) }

// RegistryAddr returns the address of the local registry in a subnet.
func RegistryAddr(subnet netip.Prefix) netip.Addr { return addrAt(subnet, registryIndex) }

// BalancedAddrs returns the first and the last address for Services of type
// LoadBalancer: the last quarter of the subnet, at most 256 addresses, without the
// broadcast address. Nodes get addresses from the beginning of the subnet.
func BalancedAddrs(subnet netip.Prefix) (first, last netip.Addr) {
	size := 1 << (32 - subnet.Bits())
	return addrAt(subnet, size-min(size/4, 256)), addrAt(subnet, size-2)
}

// HasRoom reports whether addr is in the subnet and not its broadcast address.
func HasRoom(subnet netip.Prefix, addr netip.Addr) bool {
	return subnet.Contains(addr) && subnet.Contains(addr.Next())
}

func (s State) address(name string) netip.Addr {
	n, _ := s.Node(name)
	return n.Addr
}

func free(subnet netip.Prefix, role Role, taken map[netip.Addr]bool) netip.Addr {
	first := firstIndex
	if role == Worker {
		first += masterAddrs
	}
	for n := first; ; n++ {
		if addr := addrAt(subnet, n); !taken[addr] {
			return addr
		}
	}
}

func addrAt(subnet netip.Prefix, n int) netip.Addr {
	b := subnet.Masked().Addr().As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// last returns the highest address that the nodes and the front need.
func (t Topology) last() netip.Addr {
	var last netip.Addr
	if t.Masters() > 0 {
		last = FrontAddr(t.subnet)
	}
	for _, n := range t.nodes {
		if !last.IsValid() || last.Less(n.Addr) {
			last = n.Addr
		}
	}
	return last
}
