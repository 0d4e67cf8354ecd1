package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Role is what a host is in its cluster.
type Role string

// The roles.
const (
	Master Role = "master"
	Worker Role = "worker"
	Bare   Role = "bare" // runs no kube-bootstrap
)

// Spec says what sets one node apart. It is kept on the node's container, so
// that the cluster itself is the list of its nodes.
type Spec struct {
	Name      string   `json:"name"` // in the cluster; the engine sees CLUSTER-NAME
	Role      Role     `json:"role"`
	HostImage string   `json:"hostImage,omitempty"` // "": that of the cluster
	NanoCPUs  int64    `json:"nanoCPUs,omitempty"`  // 0: all there are
	Memory    int64    `json:"memory,omitempty"`    // bytes; 0: all there is
	Disk      int64    `json:"disk,omitempty"`      // bytes, of what pods do not keep; 0: all there is
	Args      []string `json:"args,omitempty"`      // further arguments of its host verb
}

// specOnNode is the label that holds a Spec.
const specOnNode = "kube-bootstrap.dev/node"

// member is a host as it shall be.
type member struct {
	name string
	role Role
	addr netip.Addr
	spec Spec
}

// specs names the nodes that were asked for.
func (o Options) specs() []Spec {
	var all []Spec
	for _, name := range o.Hosts {
		all = append(all, Spec{Name: name, Role: Bare})
	}
	if len(all) > 0 {
		return all
	}
	all = slices.Clone(o.Nodes)
	if len(all) == 0 {
		all = append(slices.Repeat([]Spec{{Role: Master}}, max(o.Masters, 0)), slices.Repeat([]Spec{{Role: Worker}}, max(o.Workers, 0))...)
	}
	number := map[Role]int{}
	for i, s := range all {
		if s.Name == "" {
			number[s.Role]++
			all[i].Name = fmt.Sprintf("%s-%d", s.Role, number[s.Role])
		}
	}
	slices.SortStableFunc(all, func(a, b Spec) int { return strings.Compare(string(a.Role), string(b.Role)) })
	return all
}

func (o Options) count(role Role) (n int) {
	for _, s := range o.specs() {
		if s.Role == role {
			n++
		}
	}
	return n
}

// controlPlanes counts those of members.
func controlPlanes(all []member) (n int) {
	for _, m := range all {
		if m.role == Master {
			n++
		}
	}
	return n
}

// names are all that end up in the name of a host.
func (o Options) names() []string {
	all := append([]string{o.Name}, o.Hosts...)
	for _, n := range o.Nodes {
		if n.Name != "" {
			all = append(all, n.Name)
		}
	}
	return all
}

func (o Options) images() []string {
	all := []string{o.HostImage}
	for _, n := range o.Nodes {
		if n.HostImage != "" && !slices.Contains(all, n.HostImage) {
			all = append(all, n.HostImage)
		}
	}
	return all
}

// hostName is what the engine, the host itself and the API server call a node.
func (o Options) hostName(s Spec) string {
	if s.Role == Bare {
		return s.Name
	}
	return o.Name + "-" + s.Name
}

func (o Options) members() []member { return o.settle(nil) }

// settle gives every node its address for good: masters from .2, workers from
// .10. Those that are there keep theirs, and stay when nobody names them.
func (o Options) settle(found []docker.FoundMachine) []member {
	there := map[string]docker.FoundMachine{}
	taken := map[netip.Addr]bool{}
	for _, m := range found {
		there[m.Name], taken[m.Addr] = m, true
	}
	var all []member
	for _, s := range o.specs() {
		m := member{name: o.hostName(s), role: s.Role, spec: s}
		if is, ok := there[m.name]; ok && is.Addr.IsValid() {
			m.addr = is.Addr
		} else {
			m.addr = o.free(s.Role, taken)
		}
		taken[m.addr] = true
		delete(there, m.name)
		all = append(all, m)
	}
	for _, m := range found {
		if _, unnamed := there[m.Name]; unnamed {
			s := specOf(m)
			all = append(all, member{name: m.Name, role: s.Role, addr: m.Addr, spec: s})
		}
	}
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(string(a.role), string(b.role)) })
	return all
}

func (o Options) free(role Role, taken map[netip.Addr]bool) netip.Addr {
	first := 2
	if role == Worker {
		first += masterAddrs
	}
	for n := first; ; n++ {
		if addr := addrAt(o.Subnet, n); !taken[addr] {
			return addr
		}
	}
}

// specOf reads back what a host was made from.
func specOf(m docker.FoundMachine) Spec {
	s := Spec{Name: m.Name, Role: Bare}
	_ = json.Unmarshal([]byte(m.Labels[specOnNode]), &s) // without one it is bare
	return s
}

func (s Spec) label() map[string]string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return map[string]string{specOnNode: string(data)}
}

func lastAddr(all []member) netip.Addr {
	var last netip.Addr
	for _, m := range all {
		if !last.IsValid() || last.Less(m.addr) {
			last = m.addr
		}
	}
	return last
}

// members are those that were asked for and those that are there.
func (f *fleet) members() []member { return f.all }

func (f *fleet) settleHosts(ctx context.Context) error {
	found, err := f.found(ctx)
	if err != nil {
		return f.noAnswer(err)
	}
	f.all = f.settle(found)
	f.there = map[string]bool{}
	for _, m := range found {
		f.there[m.Name] = true
	}
	return nil
}

// leader is the control plane that the others join: one that is there already,
// as a new one would begin a cluster of its own.
func (f *fleet) leader() member {
	for _, m := range f.members() {
		if m.role == Master && f.there[m.name] {
			return m
		}
	}
	return f.members()[0]
}

// twice names hosts that would have one name.
func (o Options) twice() []error {
	var errs []error
	seen := map[string]bool{}
	for _, s := range o.specs() {
		name := o.hostName(s)
		if seen[name] {
			errs = append(errs, &step.Problem{Name: "cluster-nodes", Text: "two nodes would be called " + name, Remedy: "give one of them another name"})
		}
		seen[name] = true
	}
	return errs
}
