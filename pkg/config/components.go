package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"
)

// ExtraArgs returns the further flags of a component, with the feature gates.
func (c Config) ExtraArgs(program string) Arguments {
	for _, one := range c.components() {
		if one.name == program {
			return c.withGates(one)
		}
	}
	return nil
}

func (c Config) withGates(of component) Arguments {
	if of.name == "etcd" || len(c.FeatureGates) == 0 {
		return of.args
	}
	all := Arguments{}
	maps.Copy(all, of.args)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		words = append(words, name+"="+strconv.FormatBool(c.FeatureGates[name]))
	}
	all["feature-gates"] = strings.Join(words, ",")
	return all
}

// ProxyFields returns the further fields of the configuration of kube-proxy, with
// the feature gates, as JSON.
func (c Config) ProxyFields() string {
	if len(c.FeatureGates) == 0 {
		return c.Components.KubeProxy.Config
	}
	fields := map[string]any{}
	_ = json.Unmarshal([]byte(c.Components.KubeProxy.Config), &fields) // empty, or JSON, see mapping
	fields["featureGates"] = c.FeatureGates
	return asJSON(fields)
}

// release returns the version of a component, as far as the settings state it.
func (c Config) release(program string) string {
	if program != "etcd" {
		return c.KubernetesVersion
	}
	if _, m, err := catalog.Kubernetes(c.KubernetesVersion); err == nil && c.EtcdVersion == "" {
		return m.Etcd
	}
	return c.EtcdVersion
}

// unknownNames reports the flags and feature gates that a component does not
// have at its version, and the flags that the cluster depends on.
func (c Config) unknownNames(wrong func(name, value, format string, args ...any)) {
	for _, one := range c.components() {
		known, err := catalog.KnownFlags(one.name, c.release(one.name))
		for _, name := range slices.Sorted(maps.Keys(one.args)) {
			if must := components.Flag(one.name, name, one.args[name]); must != "" {
				wrong(one.field, name, "%s", must)
			} else if must := knownName(name, "flag of "+one.name+" "+c.release(one.name), known, err); must != "" {
				wrong(one.field, name, "%s", must)
			}
		}
	}
	known, err := catalog.KnownGates(c.KubernetesVersion)
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		if must := knownName(name, "alpha or beta feature gate of Kubernetes "+c.KubernetesVersion, known, err); must != "" {
			wrong("featureGates", name, "%s", must)
		}
	}
}

func knownName(name, what string, known []string, err error) string {
	switch {
	case err != nil:
		return err.Error() + "; leave it out"
	case slices.Contains(known, name):
		return ""
	}
	must := "is no " + what
	if best := Nearest(name, known); best != "" {
		return must + ", did you mean " + best + "?"
	}
	return must + "; --help of the component lists all of them"
}
