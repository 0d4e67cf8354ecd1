package config

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
)

// loadBalancerAddresses checks that no two ranges overlap.
func loadBalancerAddresses(all []addresses.Range) string {
	for i, r := range all {
		if slices.ContainsFunc(all[:i], r.Overlaps) {
			return strconv.Quote(r.Text()) + " overlaps another range"
		}
	}
	return ""
}

// overlapping compares the ranges for load balancers with other settings.
func (c Config) overlapping(wrong func(name, value, format string, args ...any)) {
	const name = "loadBalancerAddresses"
	value := list(c.LoadBalancerAddresses, addresses.Range.Text)
	if value != "" && !c.Join && !slices.Contains(c.Addons, extension.AddonMetalLB) {
		wrong(name, value, "needs the addon %s; add it to addons", extension.AddonMetalLB)
	}
	networks := map[string]netip.Prefix{"flannelNetwork": c.FlannelNetwork.IPv4(),
		"serviceNetwork": c.ServiceNetwork.IPv4()}
	for _, r := range c.LoadBalancerAddresses {
		for other, network := range networks {
			if r.Overlaps(addresses.Of(network)) {
				wrong(name, value, "%s overlaps %s %s; choose addresses of the hosts' network", r, other, network)
			}
		}
		for other, ip := range map[string]netip.Addr{"ipAddress": c.IPAddress, "masterIP": c.MasterIP} {
			if r.Contains(ip) {
				wrong(name, value, "%s has the %s %s; choose addresses that no machine has", r, other, ip)
			}
		}
	}
}

// WithoutUnusedAddresses drops the addresses for load balancers that the host or the cluster remembers, if the
// addon that uses them was removed from the settings.
func (c Config) WithoutUnusedAddresses(origins Origins) Config {
	const name = "loadBalancerAddresses"
	if source := origins[name].Source; !slices.Contains(c.Addons, extension.AddonMetalLB) &&
		(source == FromHost || source == FromCluster) {
		c.LoadBalancerAddresses = nil
		delete(origins, name)
	}
	return c
}
