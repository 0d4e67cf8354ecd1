package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// powered returns a cluster with nodes that are on or off: "+master-1
// -worker-1".
func powered(nodes string) (*fleet, []docker.FoundMachine) {
	var found []docker.FoundMachine
	for i, one := range strings.Fields(nodes) {
		role, _, _ := strings.Cut(one[1:], "-")
		m := docker.FoundMachine{
			Name: "k-" + one[1:], State: "exited", Addr: addrAt(DefaultSubnet, 2+i),
			Labels: Spec{Name: one[1:], Role: Role(role)}.label(),
		}
		if one[0] == '+' {
			m.State = "running"
		}
		found = append(found, m)
	}
	f := &fleet{Options: Options{Name: "k", Subnet: DefaultSubnet}}
	f.adopt(found)
	return f, found
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
		f, found := powered(test.nodes)
		m := f.byName("k-" + test.node)
		for verb, check := range map[string]struct {
			err  error
			want string
		}{"stop": {f.canStop(m, found), test.stop}, "remove": {f.canRemove(m, found), test.remove}, "start": {f.canStart(m, found), test.start}} {
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

func TestANodeWithoutARouteIsNamedWithItsAddress(t *testing.T) {
	err := reachable(t.Context(), member{name: "k-worker-1", addr: netip.MustParseAddr("224.0.0.1")}) // no TCP to a group
	if problemName(err) != "node-unreachable" || !strings.Contains(err.Error(), "224.0.0.1:2376") {
		t.Errorf("got %v", err)
	}
	if err := reachable(t.Context(), member{addr: netip.MustParseAddr("127.0.0.1")}); err != nil { // nobody listens
		t.Error(err)
	}
}
