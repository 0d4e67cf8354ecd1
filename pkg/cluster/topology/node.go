// Package topology describes the nodes of a cluster as values: the desired
// nodes (Topology) and the observed ones (State). It reads and changes nothing.
package topology

import (
	"encoding/json"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// Role is the part that a node has in its cluster.
type Role string

// The roles.
const (
	Master Role = "master"
	Worker Role = "worker"
	Bare   Role = "bare" // does not run kube-bootstrap
)

// Spec holds the settings of one node. The node's container stores them in a
// label, so that the containers alone determine the nodes of a cluster.
type Spec struct {
	Name      string   `json:"name"` // within the cluster; the engine calls the node CLUSTER-NAME
	Role      Role     `json:"role"`
	HostImage string   `json:"hostImage,omitempty"` // "": that of the cluster
	NanoCPUs  int64    `json:"nanoCPUs,omitempty"`  // 0: no limit
	Memory    int64    `json:"memory,omitempty"`    // bytes; 0: no limit
	Disk      int64    `json:"disk,omitempty"`      // bytes, without the volumes of pods; 0: no limit
	Args      []string `json:"args,omitempty"`      // further arguments of its host command
	Ports     []string `json:"ports,omitempty"`     // see config.ParsePort
	Mounts    []string `json:"mounts,omitempty"`    // see config.ParseMount
}

// specLabel is the label of a container that holds its Spec.
const specLabel = "kube-bootstrap.dev/node"

// Labels returns the container labels that store s.
func (s Spec) Labels() map[string]string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return map[string]string{specLabel: string(data)}
}

// HostName returns a node's name for the engine, the host itself and the API server.
func (s Spec) HostName(cluster string) string {
	if s.Role == Bare {
		return s.Name
	}
	return cluster + "-" + s.Name
}

// Node is a desired node.
type Node struct {
	Name string // host name
	Role Role
	Addr netip.Addr
	Spec Spec
}

// NodeState is an observed node.
type NodeState struct {
	Node
	State string // of its container: "running", "exited"
	Image string // of its container
}

// Running reports whether the node's container runs.
func (n NodeState) Running() bool { return n.State == "running" }

// StateOf converts a container to an observed node, a bare host if it has no Spec.
func StateOf(m docker.FoundMachine) NodeState {
	s := Spec{Name: m.Name, Role: Bare}
	_ = json.Unmarshal([]byte(m.Labels[specLabel]), &s)
	return NodeState{Node: Node{Name: m.Name, Role: s.Role, Addr: m.Addr, Spec: s}, State: m.State, Image: m.Image}
}
