package topology

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestMembers(t *testing.T) {
	r := Request{ControlPlanes: 1, Workers: 2, Subnet: DefaultSubnet}
	want := []string{"kube-master-1 10.192.0.2", "kube-worker-1 10.192.0.10", "kube-worker-2 10.192.0.11"}
	if got := shown(r.Topology("kube", State{})); !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
}

func shown(t Topology) (text []string) {
	for _, n := range t.Nodes() {
		text = append(text, n.Name+" "+n.Addr.String())
	}
	return text
}

func TestWorkersKeepTheirAddressWhenAMasterJoins(t *testing.T) {
	one := Request{ControlPlanes: 1, Workers: 1, Subnet: DefaultSubnet}.Topology("k", State{}).Nodes()
	three := Request{ControlPlanes: 3, Workers: 1, Subnet: DefaultSubnet}.Topology("k", State{}).Nodes()
	if one[1].Name != three[3].Name || one[1].Addr != three[3].Addr {
		t.Errorf("worker moved from %v to %v", one[1], three[3])
	}
}

// Existing nodes keep their addresses, also nodes that are not in the settings.
func TestSettle(t *testing.T) {
	there := func(name, addr string, spec Spec) NodeState {
		return NodeState{
			ClusterNode: ClusterNode{Name: name, Role: spec.Role, Addr: netip.MustParseAddr(addr), Spec: spec},
		}
	}
	r := Request{
		Subnet: DefaultSubnet, Nodes: []Spec{
			{Role: Worker}, {Role: Worker, Name: "gpu"}, {Role: ControlPlane}, {Role: Worker},
		},
	}
	got := shown(r.Topology("k", Observed([]NodeState{
		there("k-gpu", "10.192.0.10", Spec{Name: "gpu", Role: Worker}),
		there("k-more", "10.192.0.12", Spec{Name: "more", Role: Worker}),
	})))
	want := []string{
		"k-master-1 10.192.0.2", "k-worker-1 10.192.0.11", "k-gpu 10.192.0.10", "k-worker-2 10.192.0.13",
		"k-more 10.192.0.12",
	}
	if !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
}

// The load balancer keeps its address, however many nodes there are.
func TestNoNodeHasTheAddressOfTheLoadBalancer(t *testing.T) {
	loadBalancer := LoadBalancerAddr(DefaultSubnet)
	for _, m := range (Request{ControlPlanes: MaxControlPlanes, Workers: 20, Subnet: DefaultSubnet}).Topology("k",
		State{}).Nodes() {
		if m.Addr == loadBalancer {
			t.Errorf("%s has %s", m.Name, m.Addr)
		}
	}
	small := Request{ControlPlanes: 1, Subnet: netip.MustParsePrefix("10.192.0.0/29")}
	if found := step.Problems(errors.Join(small.Validate("k")...)); len(found) != 1 ||
		found[0].Name != "cluster-subnet" {
		t.Error("a subnet without room for the load balancer is accepted")
	}
}

// A State is immutable: changes of a returned slice do not change it.
func TestTheStateOfAClusterIsReadByItsNodes(t *testing.T) {
	node := func(name, state, addr string, role Role) NodeState {
		spec := Spec{Name: name, Role: role}
		return NodeState{
			ClusterNode: ClusterNode{Name: "k-" + name, Role: role, Addr: netip.MustParseAddr(addr), Spec: spec},
			State:       state,
		}
	}
	is := Observed([]NodeState{
		node("worker-1", "running", "10.192.0.10", Worker), node("master-2", "running", "10.192.0.3", ControlPlane),
		node("master-1", "running", "10.192.0.2", ControlPlane), node("worker-2", "paused", "10.192.0.11", Worker),
	})
	is.Nodes()[0].Name = "changed"
	if got, want := strings.Join(is.Names(), " "), "k-master-1 k-master-2 k-worker-1 k-worker-2"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
	first, _ := is.RunningControlPlane("")
	second, _ := is.RunningControlPlane("k-master-1")
	if first.Name != "k-master-1" || second.Name != "k-master-2" {
		t.Errorf("control planes %s and %s", first.Name, second.Name)
	}
	if is.Runs("k-worker-2") || is.Runs("k-worker-3") || !is.Has("k-worker-2") || is.AllOff() ||
		len(is.Running()) != 3 {
		t.Errorf("running: %v", is.Running())
	}
	off := Observed([]NodeState{node("master-1", "exited", "10.192.0.2", ControlPlane)})
	if _, ok := off.RunningControlPlane(""); ok || !off.AllOff() || (State{}).AllOff() {
		t.Error("a cluster that is off")
	}
}

func TestATopologyFindsItsNodes(t *testing.T) {
	is := Observed([]NodeState{{ClusterNode: ClusterNode{
		Name: "k-master-2", Role: ControlPlane, Spec: Spec{Name: "master-2", Role: ControlPlane},
	},
		State: "exited"}})
	nodes := Request{ControlPlanes: 2, Workers: 1, Subnet: DefaultSubnet, HostImage: "a",
		Nodes: []Spec{{Role: ControlPlane}, {Role: ControlPlane}, {Role: Worker, HostImage: "b"}}}.Topology("k", is)
	if got := nodes.FirstControlPlane(is).Name; got != "k-master-2" {
		t.Errorf("the others join %s, which does not exist", got)
	}
	if got := nodes.FirstControlPlane(State{}).Name; got != "k-master-1" {
		t.Errorf("the others of a new cluster join %s", got)
	}
	if missing := nodes.Missing(is); len(missing) != 2 || missing[0].Name != "k-master-1" ||
		nodes.OnlyControlPlanes() || nodes.ControlPlanes() != 2 {
		t.Errorf("missing %v", missing)
	}
	for _, name := range []string{"worker-1", "k-worker-1"} {
		if n, err := nodes.Pick(name); err != nil || n.Name != "k-worker-1" || nodes.Variant(n) != "b" {
			t.Errorf("%s: %v, %v", name, n, err)
		}
	}
	for name, want := range map[string]string{"x": "node-missing", "master-2": "node-off"} {
		_, err := nodes.PickRunning(name, is)
		if found := step.Problems(err); len(found) != 1 || found[0].Name != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestNodesWithoutANetworkOfTheirOwn: the addresses of machines do not come from the cluster.
func TestNodesWithoutANetworkOfTheirOwn(t *testing.T) {
	there := NodeState{ClusterNode: ClusterNode{Name: "k-master-1", Role: ControlPlane,
		Addr: netip.MustParseAddr("192.0.2.7"),
		Spec: Spec{Name: "master-1", Role: ControlPlane}}}
	got := shown(Request{ControlPlanes: 1, Workers: 1}.Topology("k", Observed([]NodeState{there})))
	if want := []string{"k-master-1 192.0.2.7", "k-worker-1 invalid IP"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
