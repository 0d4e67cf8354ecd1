package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// newerFields reports the kubelet fields, of all nodes and of single ones, that
// the kubelet of the wanted version does not have.
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
		check(fmt.Sprintf("nodes[%d].kubelet", i), n.Own.KubeletConfig)
	}
}
