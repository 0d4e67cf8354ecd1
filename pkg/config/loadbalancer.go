package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
)

// LoadBalancerRanges returns the ranges of the setting, which was validated.
func (c Config) LoadBalancerRanges() []addresses.Range {
	return valid(c.LoadBalancerAddresses, addresses.Parse)
}

// loadBalancerAddresses checks each range, and that no two of them overlap.
func loadBalancerAddresses(s string) string {
	var all []addresses.Range
	for item := range strings.SplitSeq(s, ",") {
		r, err := addresses.Parse(item)
		if err != nil {
			return strconv.Quote(item) + " " + err.Error()
		}
		if slices.ContainsFunc(all, r.Overlaps) {
			return strconv.Quote(item) + " overlaps another range"
		}
		all = append(all, r)
	}
	return ""
}

// overlapping compares the ranges for load balancers with other settings.
func (c Config) overlapping(wrong func(name, value, format string, args ...any)) {
	const name = "loadBalancerAddresses"
	value := strings.Join(c.LoadBalancerAddresses, ",")
	if value != "" && !c.Join && !slices.Contains(c.Addons, AddonMetalLB) {
		wrong(name, value, "needs the addon %s; add it to addons", AddonMetalLB)
	}
	for _, r := range c.LoadBalancerRanges() {
		for other, network := range map[string]string{"flannelNetwork": c.FlannelNetwork, "serviceNetwork": c.ServiceNetwork} {
			if r.Overlaps(addresses.Of(netip.MustParsePrefix(network))) {
				wrong(name, value, "%s overlaps %s %s; choose addresses of the hosts' network", r, other, network)
			}
		}
		for other, address := range map[string]string{"ipAddress": c.IPAddress, "masterIP": c.MasterIP} {
			if ip, err := netip.ParseAddr(address); err == nil && r.Contains(ip) {
				wrong(name, value, "%s has the %s %s; choose addresses that no machine has", r, other, ip)
			}
		}
	}
}

// WithoutUnusedAddresses drops the addresses for load balancers that the host or
// the cluster remembers, if the addon that uses them was removed from the settings.
func (c Config) WithoutUnusedAddresses(origins Origins) Config {
	const name = "loadBalancerAddresses"
	if source := origins[name].Source; !slices.Contains(c.Addons, AddonMetalLB) && (source == FromHost || source == FromCluster) {
		c.LoadBalancerAddresses = nil
		delete(origins, name)
	}
	return c
}
