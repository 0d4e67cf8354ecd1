package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Networks are the networks of one purpose, one for each family of addresses. Only one IPv4 network is accepted
// today.
type Networks []netip.Prefix

// IPv4 returns the IPv4 network; it is not valid if the setting is not set.
func (n Networks) IPv4() netip.Prefix {
	for _, network := range n {
		if network.Addr().Is4() {
			return network
		}
	}
	return netip.Prefix{}
}

// String returns the networks as a setting lists them.
func (n Networks) String() string { return list(n, netip.Prefix.String) }

// dns returns the tenth address of the IPv4 network, by convention that of the DNS. It is not valid if the
// network is smaller.
func (n Networks) dns() netip.Addr {
	network := n.IPv4()
	addr := network.Addr()
	for range 10 {
		addr = addr.Next()
	}
	if !network.Contains(addr) {
		return netip.Addr{}
	}
	return addr
}

func parseNetworks(s string) (Networks, error) {
	if s = strings.TrimSpace(s); s == "" {
		return nil, nil
	}
	if strings.Contains(s, ",") {
		return nil, errors.New("must be one network, such as 10.1.0.0/16")
	}
	one, err := parseNetwork(s)
	if err != nil {
		return nil, err
	}
	return Networks{one}, nil
}

// parseNetwork reads an IPv4 network. The error says what it must be.
func parseNetwork(s string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return prefix, errors.New("must be a network, such as 10.1.0.0/16")
	case !prefix.Addr().Is4():
		return prefix, errors.New("must be an IPv4 network, such as 10.1.0.0/16")
	case prefix != prefix.Masked():
		return prefix, fmt.Errorf("has host bits set; write %s", prefix.Masked())
	}
	return prefix, nil
}

// parseAddress reads an IPv4 address; the empty text is none.
func parseAddress(s string) (netip.Addr, error) {
	if s = strings.TrimSpace(s); s == "" {
		return netip.Addr{}, nil
	}
	ip, err := netip.ParseAddr(s)
	if err != nil || !ip.Is4() {
		return netip.Addr{}, errors.New("must be an IPv4 address, such as 192.168.1.10")
	}
	return ip, nil
}

// The checks of networks.
var (
	flannelNetwork = sized(8, 23, "is too large: use at most a /8",
		"is too small: each host gets a /24, so two hosts need at least a /23")
	serviceNetwork = sized(12, 27, "is too large: the API server takes at most a /12",
		"is too small: use at least a /27")
)

// sized returns the check of a network whose prefix length has limits.
func sized(shortest, longest int, large, small string) func(Networks) string {
	return func(n Networks) string {
		switch bits := n.IPv4().Bits(); {
		case bits > longest:
			return small
		case bits < shortest:
			return large
		}
		return ""
	}
}

// reachable is the check of the address of a host or Service.
func reachable(ip netip.Addr) string {
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() {
		return "must be an address that other hosts can reach"
	}
	return ""
}
