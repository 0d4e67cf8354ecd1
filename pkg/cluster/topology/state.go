package topology

import (
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// State holds the observed nodes of a cluster at one moment. It is immutable.
type State struct{ nodes []NodeState }

// Observed returns the state of a cluster from all containers of its engine.
func Observed(cluster string, machines []docker.FoundMachine) State {
	var s State
	for _, m := range machines {
		if m.Cluster == cluster {
			s.nodes = append(s.nodes, StateOf(m))
		}
	}
	return s
}

// Nodes returns the observed nodes in the order of the engine.
func (s State) Nodes() []NodeState { return slices.Clone(s.nodes) }

// ByAddress returns the observed nodes in the order of their addresses.
func (s State) ByAddress() []NodeState {
	return slices.SortedStableFunc(slices.Values(s.nodes), func(a, b NodeState) int { return a.Addr.Compare(b.Addr) })
}

// Empty reports whether there is no node.
func (s State) Empty() bool { return len(s.nodes) == 0 }

// Node returns the node of this host name.
func (s State) Node(name string) (NodeState, bool) {
	at := slices.IndexFunc(s.nodes, func(n NodeState) bool { return n.Name == name })
	if at < 0 {
		return NodeState{}, false
	}
	return s.nodes[at], true
}

// Has reports whether the node of this host name exists.
func (s State) Has(name string) bool {
	_, ok := s.Node(name)
	return ok
}

// Runs reports whether the node of this host name exists and runs.
func (s State) Runs(name string) bool {
	n, _ := s.Node(name)
	return n.Running()
}

// Running returns the nodes that run.
func (s State) Running() []NodeState {
	return slices.DeleteFunc(s.Nodes(), func(n NodeState) bool { return !n.Running() })
}

// AllOff reports whether the cluster has nodes and none of them runs or is paused.
func (s State) AllOff() bool {
	on := func(n NodeState) bool { return n.Running() || n.State == "paused" }
	return len(s.nodes) > 0 && !slices.ContainsFunc(s.nodes, on)
}

// Names returns the host names in alphabetical order.
func (s State) Names() []string {
	var all []string
	for _, n := range s.nodes {
		all = append(all, n.Name)
	}
	slices.Sort(all)
	return all
}

// RunningMaster returns the running control plane with the lowest address,
// other than the node named except.
func (s State) RunningMaster(except string) (NodeState, bool) {
	for _, n := range s.ByAddress() {
		if n.Role == Master && n.Running() && n.Name != except {
			return n, true
		}
	}
	return NodeState{}, false
}

// Specs returns the settings that the nodes were created with.
func (s State) Specs() []Spec {
	var all []Spec
	for _, n := range s.nodes {
		all = append(all, n.Spec)
	}
	return all
}

func byRole(a, b Node) int { return strings.Compare(string(a.Role), string(b.Role)) }
