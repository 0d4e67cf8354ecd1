package topology

import (
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Resolve returns the nodes that the cluster must have: the requested ones and,
// for settings that were not given, the recorded ones. A recorded node that the
// request leaves out is an error, because `cluster up` never removes nodes. said
// returns how the user wrote a setting ("" if the setting was not given).
func Resolve(cluster string, recorded []Spec, asked Request, said func(string) string) (nodes []Spec, errs []error) {
	nodes = slices.Clone(recorded)
	if by := said("nodes"); by != "" {
		nodes = Request{Nodes: asked.Nodes}.Specs()
		for _, s := range recorded {
			if !slices.ContainsFunc(nodes, func(n Spec) bool { return n.Name == s.Name }) {
				errs = append(errs,
					fewer(cluster, "has node "+s.Name+", which "+by+" does not list", "list it", s.Name))
			}
		}
	}
	for _, one := range []struct {
		role  Role
		by    string
		count int
	}{{ControlPlane, said("masters"), asked.ControlPlanes}, {Worker, said("workers"), asked.Workers}} {
		if one.by == "" {
			continue
		}
		var has int
		if nodes, has = resize(nodes, one.role, one.count); has > one.count {
			errs = append(errs,
				fewer(cluster, fmt.Sprintf("has %d nodes of the role %s and not %d (%s)", has, one.role, one.count,
					one.by), "omit "+one.by, "NODE"))
		}
	}
	return nodes, errs
}

func fewer(cluster, text, omit, node string) error {
	return &step.Problem{Name: "cluster-differs", Text: "cluster " + cluster + " " + text,
		Remedy: omit + ", or run `kube-bootstrap node remove " + node + " --cluster " + cluster + "`"}
}

// resize changes the number of nodes of a role to count, and returns the previous one.
func resize(nodes []Spec, role Role, count int) ([]Spec, int) {
	var has int
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(s Spec) bool {
		if s.Role == role {
			has++
		}
		return s.Role == role && has > count
	})
	for range count - has {
		taken := func(name string) bool {
			return slices.ContainsFunc(nodes, func(s Spec) bool { return s.Name == name })
		}
		nodes = append(nodes, Spec{Name: FreeName(role, taken), Role: role})
	}
	return nodes, has
}

// FreeName returns the default name of a node: its role with the first number that is free.
func FreeName(role Role, taken func(name string) bool) string {
	for n := 1; ; n++ {
		if name := fmt.Sprintf("%s-%d", role, n); !taken(name) {
			return name
		}
	}
}
