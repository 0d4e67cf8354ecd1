package preflight

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestNodesAndBareHosts: `cluster up` must not make workers of the bare hosts of a user, and
// `cluster hosts` must not add hosts to a cluster.
func TestNodesAndBareHosts(t *testing.T) {
	subnet := netip.MustParsePrefix("10.192.0.0/16")
	bare := topology.Request{Hosts: []string{"lab-1"}, Subnet: subnet}
	nodes := topology.Request{ControlPlanes: 1, Workers: 1, Subnet: subnet}
	hosts := observed(topology.ClusterNode{Name: "lab-1", Role: topology.Bare})
	cluster := observed(topology.ClusterNode{Name: "lab-master-1", Role: topology.ControlPlane})
	for name, test := range map[string]struct {
		asked topology.Request
		is    topology.State
		want  int
	}{
		"new hosts": {bare, topology.State{}, 0}, "the same hosts": {bare, hosts, 0},
		"a cluster on hosts": {nodes, hosts, 1},
		"a new cluster":      {nodes, topology.State{}, 0}, "the same cluster": {nodes, cluster, 0},
		"hosts in a cluster": {bare, cluster, 1},
	} {
		if found := step.Problems(Mixed(test.asked.Topology("lab", topology.State{}),
			test.is)); len(found) != test.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func observed(nodes ...topology.ClusterNode) topology.State {
	var all []topology.NodeState
	for _, n := range nodes {
		all = append(all, topology.NodeState{ClusterNode: n, State: topology.StateRunning})
	}
	return topology.Observed(all)
}
