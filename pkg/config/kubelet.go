package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// keptFields of the kubelet's configuration are what makes the node a part of
// this cluster, or safe; each with what to use instead.
var keptFields = map[string]string{
	"apiVersion": "leave it out", "kind": "leave it out",
	"authentication": "it stays as it is", "authorization": "it stays as it is", "readOnlyPort": "it stays closed",
	"serverTLSBootstrap": "it stays on", "rotateCertificates": "it stays on", "tlsMinVersion": "it stays as it is",
	"staticPodPath": "it stays as it is", "cgroupDriver": "it follows the container runtime",
	"containerRuntimeEndpoint": "use criSocket", "clusterDNS": "use dnsServerIP", "clusterDomain": "use dnsDomain",
	"registerWithTaints": "use nodeTaints, or taints of the node", "port": "it stays 10250",
}

func kubeletConfig(s string) string {
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &given); err != nil {
		return "must be fields with values, such as {maxPods: 50}"
	}
	for name := range given {
		if remedy, kept := keptFields[name]; kept {
			return fmt.Sprintf("%s cannot be set here: %s", name, remedy)
		}
	}
	var c kubeletv1.KubeletConfiguration
	if err := yaml.UnmarshalStrict([]byte(s), &c); err != nil {
		return "must be fields of a KubeletConfiguration: " + plainly(err)
	}
	return ""
}

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

// plainly drops the decoder's own words from around what is wrong.
func plainly(err error) string {
	words := strings.Split(err.Error(), ": ")
	return strings.Join(words[slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "error ") }):], ": ")
}
