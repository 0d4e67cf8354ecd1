package localcluster

import (
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
)

// withBalancedAddresses gives the addon metallb the end of the network of the
// nodes, unless the user gave addresses.
func withBalancedAddresses(cfg config.Config, origins config.Origins) config.Config {
	const name = "loadBalancerAddresses"
	if origins[name].Source != config.FromDefault || !slices.Contains(cfg.Addons, config.AddonMetalLB) {
		return cfg
	}
	subnet, err := netip.ParsePrefix(cfg.DindSubnet)
	if err != nil {
		return cfg // Validate reports it
	}
	if first, last := topology.BalancedAddrs(subnet); first.Less(last) {
		cfg.LoadBalancerAddresses = []string{addresses.Range{First: first, Last: last}.String()}
		origins[name] = config.Origin{Source: config.FromCluster}
	}
	return cfg
}
