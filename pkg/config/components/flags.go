// Package components checks the flags and the configurations that users give to
// components of Kubernetes and to etcd. It refuses the parts that make a component
// a part of the cluster, or safe.
package components

import (
	_ "embed" // kept.yaml
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed kept.yaml
var keptTable []byte

// reasons contains what users cannot set: names, by the setting to use instead or the reason.
type reasons map[string][]string

// kept contains the flags that users cannot set, by program, and the fields, by kind. The
// flags of "kubernetes" are those of several components.
var kept = sync.OnceValue(func() (all struct{ Flags, Fields map[string]reasons }) {
	if err := yaml.UnmarshalStrict(keptTable, &all); err != nil {
		panic(err) // a test reads the table
	}
	return all
})

// of returns the reason for which a name is kept; "" if it is not. A name of the table that
// ends in * stands for all names that begin with it.
func (r reasons) of(name string) string {
	for reason, forms := range r {
		for _, form := range forms {
			prefix, isPrefix := strings.CutSuffix(form, "*")
			if name == form || isPrefix && strings.HasPrefix(name, prefix) {
				return reason
			}
		}
	}
	return ""
}

// Flag returns why a flag cannot be set, with the setting to use instead.
func Flag(program, name, value string) string {
	reason := kept().Flags[program].of(name)
	if reason == "" && program != "etcd" {
		reason = kept().Flags["kubernetes"].of(name)
	}
	switch {
	case reason != "":
		return "cannot be set here: " + reason
	case name == "disable-admission-plugins" && slices.Contains(strings.Split(value, ","), "NodeRestriction"):
		return "cannot contain NodeRestriction: it keeps a node from changing other nodes"
	}
	return ""
}
