package preflight

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// powered returns a cluster with nodes that are on or off: "+master-1
// -worker-1".
func powered(nodes string) (topology.Topology, topology.State) {
	var found []topology.NodeState
	for _, one := range strings.Fields(nodes) {
		role, _, _ := strings.Cut(one[1:], "-")
		spec := topology.Spec{Name: one[1:], Role: topology.Role(role)}
		m := topology.NodeState{
			ClusterNode: topology.ClusterNode{Name: "k-" + spec.Name, Role: spec.Role, Spec: spec}, State: "exited",
		}
		if one[0] == '+' {
			m.State = "running"
		}
		found = append(found, m)
	}
	state := topology.Observed(found)
	return state.Topology("k"), state
}

func TestNodesThatMayNotGoOrComeAreNamedBefore(t *testing.T) {
	for _, test := range []struct{ nodes, node, stop, remove, start string }{
		{"+master-1 +worker-1", "worker-1", "", "", ""},
		{"+master-1 +worker-1", "master-1", "last-control-plane", "last-control-plane", ""},
		{"-master-1 -worker-1", "worker-1", "", "", "cluster-off"},
		{"-master-1 -worker-1", "master-1", "last-control-plane", "last-control-plane", ""},
		{"+master-1 +master-2", "master-2", "etcd-quorum", "", ""},
		{"+master-1 +master-2 +master-3", "master-2", "", "", ""},
		{"+master-1 +master-2 -master-3", "master-2", "etcd-quorum", "etcd-quorum", ""},
		{"+master-1 +master-2 -master-3", "master-3", "", "", ""},
		{"-master-1 -master-2 -master-3", "master-3", "last-control-plane", "last-control-plane", "cluster-off"},
		{"+master-1 -master-2 -master-3 -worker-1", "worker-1", "", "", "cluster-off"},
		{"+master-1 -master-2 -master-3", "master-3", "etcd-quorum", "etcd-quorum", ""},
	} {
		nodes, is := powered(test.nodes)
		n := nodes.Node("k-" + test.node)
		for verb, check := range map[string]struct {
			err  error
			want string
		}{
			"stop": {CanStop(nodes, is, n), test.stop}, "remove": {CanRemove(nodes, is, n), test.remove},
			"start": {CanStart(nodes, is, n), test.start},
		} {
			if got := problemName(check.err); got != check.want {
				t.Errorf("%s %s of %q: %q, want %q", verb, test.node, test.nodes, got, check.want)
			}
		}
	}
}

func problemName(err error) string {
	for _, p := range step.Problems(err) {
		return p.Name
	}
	return ""
}
