package preflight

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

func TestASecondControlPlaneIsNotCreated(t *testing.T) {
	then := []topology.Spec{{Name: "master-1", Role: topology.ControlPlane}}
	nodes := topology.Request{Subnet: topology.DefaultSubnet, Nodes: []topology.Spec{{Role: topology.ControlPlane},
		{Role: topology.ControlPlane}}}.Topology("k", topology.State{})
	if errs := Grown(nodes, topology.State{}, then); len(errs) != 1 ||
		!strings.Contains(errs[0].Error(), "cluster k has no control plane k-master-2;") {
		t.Errorf("a second control plane: %v", errs) // the first one was lost and is created again
	}
}
