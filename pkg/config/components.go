package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// Components are the settings of single components. The components of one kind have the same settings on all
// hosts.
type Components struct {
	APIServer, ControllerManager, Scheduler, Etcd, Kubelet Component

	KubeProxy KubeProxy
}

// Component is a component that is configured with flags.
type Component struct{ ExtraArgs Arguments }

// KubeProxy is configured with a file only.
type KubeProxy struct {
	Config string // JSON
}

// componentSettings are the block "components", and what components share.
var componentSettings = sharing(Setting{
	Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
}, append(programRows(), []Setting{{
	Field: "components.kubeProxy.config", Flag: "kube-proxy-config",
	Help: "additional fields of the configuration of kube-proxy, as JSON or YAML: {mode: nftables}", as: mapping,
	check: on(components.ProxyConfig),
}, {
	Field: "featureGates", Flag: "feature-gates", Verbs: hosts,
	Help: "alpha and beta feature gates of Kubernetes: NAME=true or NAME=false, comma separated",
}}...))

// A program of the cluster has flags that the user may set.
type program struct {
	name  string
	field string // in the block "components"
	flag  string
	verbs Verb
	of    func(*Components) *Component
}

var programs = []program{
	{"kube-apiserver", "apiserver", "apiserver-arg", controlPlanes,
		func(c *Components) *Component { return &c.APIServer }},
	{"kube-controller-manager", "controllerManager", "controller-manager-arg", controlPlanes,
		func(c *Components) *Component { return &c.ControllerManager }},
	{"kube-scheduler", "scheduler", "scheduler-arg", controlPlanes,
		func(c *Components) *Component { return &c.Scheduler }},
	{"etcd", "etcd", "etcd-arg", controlPlanes, func(c *Components) *Component { return &c.Etcd }},
	{"kubelet", "kubelet", "kubelet-arg", hosts, func(c *Components) *Component { return &c.Kubelet }},
}

// extraArgs returns the name of the setting in the file.
func (p program) extraArgs() string { return "components." + p.field + ".extraArgs" }

// programRows returns the rows of the flags of programs.
func programRows() (rows []Setting) {
	for _, p := range programs {
		title := p.name
		if p.name == "kubelet" {
			title = "the kubelets"
		}
		rows = append(rows, Setting{
			Field: p.extraArgs(), Flag: p.flag, Verbs: p.verbs,
			Help: "additional flag of " + title + ", NAME=VALUE; may be repeated",
		})
	}
	return rows
}

// ExtraArgs returns the further flags of a component, with the feature gates.
func (c Config) ExtraArgs(name string) Arguments {
	at := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if at < 0 {
		return nil
	}
	own := programs[at].of(&c.Components).ExtraArgs
	if name == "etcd" || len(c.FeatureGates) == 0 {
		return own
	}
	all := Arguments{}
	maps.Copy(all, own)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		words = append(words, name+"="+strconv.FormatBool(c.FeatureGates[name]))
	}
	all["feature-gates"] = strings.Join(words, ",")
	return all
}

// ProxyFields returns the further fields of kube-proxy and the feature gates, as JSON.
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

// unknownNames reports the flags and feature gates that a component does not have at its version, and the flags
// that the cluster depends on.
func (c Config) unknownNames(wrong func(name, value, format string, args ...any)) {
	for _, p := range programs {
		release, args := c.release(p.name), p.of(&c.Components).ExtraArgs
		known, err := catalog.KnownFlags(p.name, release)
		for _, name := range slices.Sorted(maps.Keys(args)) {
			must := cmp.Or(components.Flag(p.name, name, args[name]),
				knownName(name, "flag of "+p.name+" "+release, known, err))
			if must != "" {
				wrong(p.extraArgs(), name, "%s", must)
			}
		}
	}
	known, err := catalog.KnownGates(c.KubernetesVersion)
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		if must := knownName(name, "alpha or beta feature gate of Kubernetes "+c.KubernetesVersion, known,
			err); must != "" {
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
	return "is no " + what + cmp.Or(spelling.Meant(name, known), "; --help of the component lists all of them")
}

// newerFields reports the kubelet fields, of all nodes and of single ones, that the kubelet of the wanted
// version does not have.
func (c Config) newerFields(wrong func(name, value, format string, args ...any)) {
	check := func(path, own string) {
		var given map[string]json.RawMessage
		if json.Unmarshal([]byte(own), &given) != nil {
			return // empty, or invalid JSON that another check reports
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if err := catalog.CheckKubeletField(c.KubernetesVersion, name); err != nil {
				wrong(path, own, "%v", err)
			}
		}
	}
	check("kubeletConfig", c.KubeletConfig)
	for i, n := range c.Nodes {
		check(fmt.Sprintf("nodes[%d].kubelet", i), n.Settings.KubeletConfig)
	}
}
