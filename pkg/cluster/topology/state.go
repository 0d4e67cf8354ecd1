// Package topology describes the nodes of a cluster as values: the desired
// nodes (Topology) and the observed ones (State). It reads and changes nothing.
package topology

import (
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Role is the part that a node has in its cluster.
type Role string

// The roles.
const (
	ControlPlane Role = config.RoleControlPlane
	Worker       Role = config.RoleWorker
	Bare         Role = "bare" // does not run kube-bootstrap
)

// Spec holds the settings of one node. The provider keeps them with the node, so that the nodes alone
// determine a cluster.
type Spec struct {
	Name      string                 `json:"name"` // within the cluster; the provider calls the node CLUSTER-NAME
	Role      Role                   `json:"role"`
	HostImage string                 `json:"hostImage,omitempty"` // "": that of the cluster
	NanoCPUs  int64                  `json:"nanoCPUs,omitempty"`  // 0: no limit
	Memory    int64                  `json:"memory,omitempty"`    // bytes; 0: no limit
	Disk      int64                  `json:"disk,omitempty"`      // bytes, without the volumes of pods; 0: no limit
	Args      []string               `json:"args,omitempty"`      // further arguments of its host command
	Ports     []config.PublishedPort `json:"ports,omitempty"`
	Mounts    []config.NodeMount     `json:"mounts,omitempty"`
	Address   string                 `json:"address,omitempty"` // of a machine; "": the node is a container
}

// HostName returns a node's name for the provider, the host itself and the API server. A machine has a
// name of its own.
func (s Spec) HostName(cluster string) string {
	if s.Role == Bare || s.Address != "" {
		return s.Name
	}
	return cluster + "-" + s.Name
}

// ClusterNode is a desired node.
type ClusterNode struct {
	Name string // host name
	Role Role
	Addr netip.Addr
	Spec Spec
}

// NodeState is an observed node.
type NodeState struct {
	ClusterNode
	State string // StateRunning, or another word of the provider
	Image string // of its container; "" if it is none
}

// StateRunning is the State of a node that runs.
const StateRunning = "running"

// StatePaused is the State of a node whose processes are frozen.
const StatePaused = "paused"

// StateNew is the State of a machine that answers and is part of no cluster.
const StateNew = "new"

// Answers reports whether commands can run on the node, which need not be part of a cluster yet.
func (n NodeState) Answers() bool { return n.Running() || n.State == StateNew }

// Running reports whether the node runs.
func (n NodeState) Running() bool { return n.State == StateRunning }

// State holds the observed nodes of a cluster at one moment. It is immutable.
type State struct{ nodes []NodeState }

// Observed returns the state of a cluster that consists of these nodes.
func Observed(nodes []NodeState) State { return State{slices.Clone(nodes)} }

// Nodes returns the observed nodes in the order of the provider.
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
	on := func(n NodeState) bool { return n.Running() || n.State == StatePaused }
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

// RunningControlPlane returns the running control plane with the lowest address,
// other than the node named except.
func (s State) RunningControlPlane(except string) (NodeState, bool) {
	for _, n := range s.ByAddress() {
		if n.Role == ControlPlane && n.Running() && n.Name != except {
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
