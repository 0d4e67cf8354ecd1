package localcluster

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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

// checkBalanced returns the problem that a node would get an address for load
// balancers.
func checkBalanced(o cluster.Options, ranges []addresses.Range) error {
	for _, n := range o.Topology(o.Name, topology.State{}).Nodes() {
		if i := slices.IndexFunc(ranges, func(r addresses.Range) bool { return r.Contains(n.Addr) }); i >= 0 {
			return &step.Problem{Name: "load-balancer-addresses",
				Text:   fmt.Sprintf("loadBalancerAddresses: %s has the address of node %s, %s", ranges[i], n.Name, n.Addr),
				Remedy: "choose addresses that no node gets, or a larger --dind-subnet"}
		}
	}
	return nil
}
