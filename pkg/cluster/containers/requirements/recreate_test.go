package requirements

import (
	"errors"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestHostsThatAreCreatedAgain: the hosts exist, so that problems of their new settings count only
// if the hosts are removed first. They must be found before that.
func TestHostsThatAreCreatedAgain(t *testing.T) {
	specs := []topology.Spec{
		{Name: "master-1", Role: topology.ControlPlane, NanoCPUs: 64e9, Ports: published(t, "8080:80")},
		{Name: "db", Role: topology.Worker, Mounts: mounted(t, t.TempDir()+"/none:/a"), Ports: published(t, "8080:81")},
	}
	var found []topology.NodeState
	for _, spec := range specs {
		found = append(found, hostOf("k-"+spec.Name, spec, "docker-28.5"))
	}
	state := topology.Observed(found)
	for recreate, want := range map[bool][]string{false: nil, true: {"cluster-cpus", "node-mount", "node-port"}} {
		nodes := topology.Request{Subnet: topology.DefaultSubnet, Nodes: specs}.Topology("k", topology.State{})
		c := checks{
			testhost.Setup{Topology: nodes}, recreate, state,
			engineMachine{root: "/", cpus: 2, memory: 1 << 30, here: true},
		}
		errs, err := c.capacity(t.Context())
		must.NoError(t, err)
		var names []string
		for _, p := range step.Problems(errors.Join(errs...)) {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("recreate %t: %v, want %v", recreate, names, want)
		}
	}
}
