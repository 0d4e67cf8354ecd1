package topology

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Topology holds the desired nodes of a cluster: the requested nodes and the
// existing ones. It is immutable.
//
//	address in the subnet   .1       .2 ...       .9       .10 ...   .9 + frontIndex
//	                        engine   control planes        workers
type Topology struct {
	cluster   string
	subnet    netip.Prefix
	hostImage string
	nodes     []ClusterNode
}

// Request describes the requested nodes of a cluster.
type Request struct {
	ControlPlanes int
	Workers       int
	Nodes         []Spec       // instead of Masters and Workers, if the nodes differ
	Hosts         []string     // names of bare hosts, instead of control planes and workers
	Subnet        netip.Prefix // network of the nodes
	HostImage     string       // variant of nodes without their own
}

// Of returns the request for exactly the nodes of a state.
func (r Request) Of(s State) Request {
	r.Nodes, r.Hosts = s.Specs(), nil
	return r
}

// Specs returns the requested nodes, each with a name.
func (r Request) Specs() []Spec {
	var all []Spec
	for _, name := range r.Hosts {
		all = append(all, Spec{Name: name, Role: Bare})
	}
	if len(all) > 0 {
		return all
	}
	all = slices.Clone(r.Nodes)
	if len(all) == 0 {
		all = append(slices.Repeat([]Spec{{Role: ControlPlane}}, max(r.ControlPlanes, 0)),
			slices.Repeat([]Spec{{Role: Worker}}, max(r.Workers, 0))...)
	}
	number := map[Role]int{}
	for i, s := range all {
		if s.Name == "" {
			number[s.Role]++
			all[i].Name = fmt.Sprintf("%s-%d", s.Role, number[s.Role])
		}
	}
	slices.SortStableFunc(all, func(a, b Spec) int { return cmp.Compare(a.Role, b.Role) })
	return all
}

// Topology assigns an address to every requested node. An existing node keeps
// its address, and stays part of the topology if the request does not name it.
func (r Request) Topology(cluster string, is State) Topology {
	t := Topology{cluster: cluster, subnet: r.Subnet, hostImage: r.HostImage}
	taken := map[netip.Addr]bool{}
	for _, n := range is.nodes {
		taken[n.Addr] = true
	}
	for _, s := range r.Specs() {
		n := ClusterNode{Name: s.HostName(cluster), Role: s.Role, Spec: s}
		existing, _ := is.Node(n.Name)
		if n.Addr = existing.Addr; !n.Addr.IsValid() {
			n.Addr = free(r.Subnet, s.Role, taken)
		}
		taken[n.Addr] = true
		t.nodes = append(t.nodes, n)
	}
	for _, n := range is.nodes {
		if !t.Has(n.Name) {
			t.nodes = append(t.nodes, n.ClusterNode)
		}
	}
	slices.SortStableFunc(t.nodes, func(a, b ClusterNode) int { return cmp.Compare(a.Role, b.Role) })
	return t
}

// Topology returns the topology that consists of exactly the existing nodes.
func (s State) Topology(cluster string) Topology { return Request{}.Topology(cluster, s) }

// Cluster returns the name of the cluster.
func (t Topology) Cluster() string { return t.cluster }

// Subnet returns the network of the nodes.
func (t Topology) Subnet() netip.Prefix { return t.subnet }

// Nodes returns all nodes, control planes first.
func (t Topology) Nodes() []ClusterNode { return slices.Clone(t.nodes) }

// Node returns the node of this host name; the zero Node if there is none.
func (t Topology) Node(name string) ClusterNode {
	for _, n := range t.nodes {
		if n.Name == name {
			return n
		}
	}
	return ClusterNode{}
}

// Has reports whether there is a node of this host name.
func (t Topology) Has(name string) bool { return t.Node(name).Name != "" }

// Variant returns the variant of a node's host image.
func (t Topology) Variant(n ClusterNode) string { return cmp.Or(n.Spec.HostImage, t.hostImage) }

// ControlPlanes returns the number of control planes.
func (t Topology) ControlPlanes() (n int) {
	for _, node := range t.nodes {
		if node.Role == ControlPlane {
			n++
		}
	}
	return n
}

// OnlyControlPlanes reports whether there is no worker, so that control planes must run the pods.
func (t Topology) OnlyControlPlanes() bool {
	return !slices.ContainsFunc(t.nodes, func(n ClusterNode) bool { return n.Role == Worker })
}

// Missing returns the nodes that do not exist.
func (t Topology) Missing(is State) []ClusterNode {
	return slices.DeleteFunc(t.Nodes(), func(n ClusterNode) bool { return is.Has(n.Name) })
}

// FirstControlPlane returns the control plane that all others join. It is an existing one
// if there is any, because a new one would create another cluster.
func (t Topology) FirstControlPlane(is State) ClusterNode {
	for _, n := range t.nodes {
		if n.Role == ControlPlane && is.Has(n.Name) {
			return n
		}
	}
	return t.nodes[0]
}

// Pick finds a node by its host name or by its name within the cluster.
func (t Topology) Pick(name string) (ClusterNode, error) {
	for _, full := range []string{name, t.cluster + "-" + name} {
		if n := t.Node(full); n.Name != "" {
			return n, nil
		}
	}
	var all []string
	for _, n := range t.nodes {
		all = append(all, n.Name)
	}
	return ClusterNode{}, &step.Problem{Name: "node-missing",
		Text:   fmt.Sprintf("cluster %s has no node %s", t.cluster, name),
		Remedy: "use one of " + strings.Join(all, ", ")}
}

// PickRunning is Pick for a node that must answer commands.
func (t Topology) PickRunning(name string, is State) (ClusterNode, error) {
	n, err := t.Pick(name)
	if found, _ := is.Node(n.Name); err == nil && !found.Answers() {
		remedy := "run `kube-bootstrap node start " + n.Name + " --cluster " + t.cluster + "`"
		if n.Spec.Address != "" {
			remedy = "switch the machine on, and check its address"
		}
		err = &step.Problem{Name: "node-off", Text: "node " + n.Name + " does not run", Remedy: remedy}
	}
	return n, err
}
