package preflight

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestNodesAndBareHosts: `cluster up` must not make workers of the bare hosts of a user, and
// `cluster hosts` must not add hosts to a cluster.
func TestNodesAndBareHosts(t *testing.T) {
	subnet := netip.MustParsePrefix("10.192.0.0/16")
	bare := topology.Request{Hosts: []string{"lab-1"}, Subnet: subnet}
	nodes := topology.Request{Masters: 1, Workers: 1, Subnet: subnet}
	const label = "kube-bootstrap.dev/node"
	hosts := topology.Observed("lab", []machines.Found{{Name: "lab-1", Cluster: "lab"}})
	cluster := topology.Observed("lab", []machines.Found{{Name: "lab-master-1", Cluster: "lab", Labels: map[string]string{label: `{"name":"master-1","role":"master"}`}}})
	for name, test := range map[string]struct {
		asked topology.Request
		is    topology.State
		want  int
	}{
		"new hosts": {bare, topology.State{}, 0}, "the same hosts": {bare, hosts, 0}, "a cluster on hosts": {nodes, hosts, 1},
		"a new cluster": {nodes, topology.State{}, 0}, "the same cluster": {nodes, cluster, 0}, "hosts in a cluster": {bare, cluster, 1},
	} {
		if found := step.Problems(mixed(test.asked.Topology("lab", topology.State{}), test.is)); len(found) != test.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}
