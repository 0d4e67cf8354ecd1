package topology

import (
	"encoding/binary"
	"net/netip"
)

const (
	// firstIndex is the index of the first control plane. The engine has the address before it.
	firstIndex = 2
	// controlPlaneAddrs is the number of addresses that are reserved for control planes,
	// the load balancer and the local registry, so that a worker keeps its address when a
	// control plane joins.
	controlPlaneAddrs = 8
	// loadBalancerIndex is the index of the load balancer's address, between the control planes
	// and the workers. The address of the local registry is before it: there are
	// fewer control planes than addresses for them.
	loadBalancerIndex = 1 + controlPlaneAddrs
	registryIndex     = loadBalancerIndex - 1
)

// LoadBalancerAddr returns the address of the load balancer in a subnet.
func LoadBalancerAddr(subnet netip.Prefix) netip.Addr { return addrAt(subnet, loadBalancerIndex) }

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

// free returns the first free address for a role. Nodes without a network of their own get none.
func free(subnet netip.Prefix, role Role, taken map[netip.Addr]bool) netip.Addr {
	if !subnet.IsValid() {
		return netip.Addr{}
	}
	first := firstIndex
	if role == Worker {
		first += controlPlaneAddrs
	}
	for n := first; ; n++ {
		if addr := addrAt(subnet, n); !taken[addr] {
			return addr
		}
	}
}

func addrAt(subnet netip.Prefix, n int) netip.Addr {
	b := subnet.Masked().Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
	return netip.AddrFrom4(b)
}
