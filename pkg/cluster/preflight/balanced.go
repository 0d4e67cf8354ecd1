package preflight

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Balanced returns the problem that a container of the cluster has an address for
// Services of type LoadBalancer.
func Balanced(t topology.Topology, ranges []addresses.Range) error {
	owners := map[netip.Addr]string{
		topology.FrontAddr(t.Subnet()):    "the API server",
		topology.RegistryAddr(t.Subnet()): "the local registry",
	}
	for _, n := range t.Nodes() {
		owners[n.Addr] = "node " + n.Name
	}
	for _, addr := range slices.SortedFunc(maps.Keys(owners), netip.Addr.Compare) {
		if i := slices.IndexFunc(ranges, func(r addresses.Range) bool { return r.Contains(addr) }); i >= 0 {
			return &step.Problem{Name: "load-balancer-addresses",
				Text:   fmt.Sprintf("loadBalancerAddresses: %s has the address of %s, %s", ranges[i], owners[addr], addr),
				Remedy: "choose addresses that no node gets, or a larger --dind-subnet"}
		}
	}
	return nil
}
