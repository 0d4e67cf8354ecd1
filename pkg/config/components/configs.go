package components

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
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

// KubeletConfig says what fields of a KubeletConfiguration, as JSON, must be.
func KubeletConfig(s string) string {
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

// plainly drops the decoder's own words from around what is wrong.
func plainly(err error) string {
	words := strings.Split(err.Error(), ": ")
	return strings.Join(words[slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "error ") }):], ": ")
}
