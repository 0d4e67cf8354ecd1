package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// Mirrors returns the settings of registryMirrors, which Validate has checked.
func (c Config) Mirrors() (all []mirror.Mirror) {
	for _, text := range c.RegistryMirrors {
		if m, err := mirror.Parse(text); err == nil {
			all = append(all, m)
		}
	}
	return all
}

// mirrors names what the mirrors contradict: one another, the private registry, or
// the local registry of the cluster.
func (c Config) mirrors(wrong func(name, value, format string, args ...any)) {
	var seen []string
	for _, m := range c.Mirrors() {
		if slices.Contains(seen, m.Of) {
			wrong("registryMirrors", m.String(), "%s has two mirrors; name one", m.Of)
		}
		if c.LocalRegistry != 0 && m.Of == fmt.Sprintf("localhost:%d", c.LocalRegistry) {
			wrong("registryMirrors", m.String(), "%s is the registry of localRegistry, so it needs no mirror; omit this one", m.Of)
		}
		seen = append(seen, m.Of)
	}
	if len(seen) > 0 && c.Registry.Address != "" {
		wrong("registryMirrors", strings.Join(c.RegistryMirrors, ","), "is not used with registry.address, which already serves the images of other registries; omit one of them")
	}
}

// mirrorSettings are where the pods of a host get their images from.
var mirrorSettings = []Setting{{
	Field: "registryMirrors", Flag: "registry-mirror", Group: GroupImages, Verbs: hosts, Shared: true, Change: OnCluster,
	Help: "registries that serve the images of others to pods: REGISTRY=[http://]HOST[/PREFIX], comma separated",
	at:   list(func(c *Config) *[]string { return &c.RegistryMirrors }), shown: mirror.Shown, check: mirror.CheckList,
}, {
	Field: "localRegistry", Flag: "local-registry", Group: GroupContainers, Default: "0", Verbs: ClusterUp, Change: Freely,
	Help: "port of 127.0.0.1 of the engine's machine, such as 5000, for a registry of this cluster, which also keeps what nodes pull; 0: none",
	at:   number(func(c *Config) *int { return &c.LocalRegistry }), check: portOrNone,
}, {
	Field: "localRegistryCache", Flag: "local-registry-cache", Group: GroupContainers, Default: "10Gi", Verbs: ClusterUp, Change: Freely,
	Help: "disk space for the images of other registries that the registry of this cluster keeps; it removes the least recently used first",
	at:   text(func(c *Config) *string { return &c.LocalRegistryCache }), check: amount,
}}

func portOrNone(s string) string {
	if s != "0" && port(s) != "" {
		return "must be a port, 1 to 65535, or 0 for no registry"
	}
	return ""
}
