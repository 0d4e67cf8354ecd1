package requirements

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

func TestHostsThatExistWithOtherSettings(t *testing.T) {
	nodes := topology.Request{HostImage: "docker-28.5", Subnet: topology.DefaultSubnet, Nodes: []topology.Spec{
		{Name: "master-1", Role: topology.ControlPlane},
		{Name: "db", Role: topology.Worker, Memory: 2 << 30, Ports: published(t, "80:80"),
			Args: []string{"--node-label=a=b"}}, {Name: "web", Role: topology.Worker, HostImage: "sysv"},
	}}.Topology("k", topology.State{})
	found := func(spec topology.Spec, image string) topology.NodeState { return hostOf("k-"+spec.Name, spec, image) }
	errs := changed(nodes, topology.Observed([]topology.NodeState{
		found(topology.Spec{Name: "master-1", Role: topology.ControlPlane}, "docker-28.5"),
		found(topology.Spec{Name: "db", Role: topology.Worker, Memory: 1 << 30, NanoCPUs: 15e8}, "docker-28.5"),
		found(topology.Spec{Name: "web", Role: topology.Worker}, "docker-28.5"),
	}))
	text := fmt.Sprint(errs)
	for _, want := range []string{"node db of cluster k exists with cpus 1500m and not unlimited, memory 1Gi and not " +
		"2Gi, ports none and not 80:80;", "node web of cluster k exists with hostImage docker-28.5 and not sysv;"} {
		if !strings.Contains(text, want) || len(errs) != 2 {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

// TestBareHostsWithOtherSettings: no command creates one of them again.
func TestBareHostsWithOtherSettings(t *testing.T) {
	bare := topology.Spec{Name: "lab-1", Role: topology.Bare}
	hosts := topology.Request{HostImage: "sysv", Subnet: topology.DefaultSubnet,
		Hosts: []string{"lab-1"}}.Topology("lab", topology.State{})
	errs := changed(hosts, topology.Observed([]topology.NodeState{hostOf("lab-1", bare, "docker-28.5")}))
	if text := fmt.Sprint(errs); !strings.Contains(text, "cluster clean --name lab") ||
		strings.Contains(text, "--recreate") {
		t.Errorf("got %s", text)
	}
}

// hostOf returns a host that was created with an image.
func hostOf(name string, spec topology.Spec, image string) topology.NodeState {
	n := topology.ClusterNode{Name: name, Role: spec.Role, Spec: spec}
	return topology.NodeState{ClusterNode: n, Image: testhost.Images + ":" + image + "-0123456789ab"}
}
