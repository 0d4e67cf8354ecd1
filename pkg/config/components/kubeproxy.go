package components

import (
	"encoding/json"
	"fmt"

	proxyv1 "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// keptProxyFields of the configuration of kube-proxy are what makes it a part of
// this cluster, each with what to use instead.
var keptProxyFields = map[string]string{
	"apiVersion": "leave it out", "kind": "leave it out", "featureGates": "use featureGates", "clusterCIDR": "use flannelNetwork",
	"hostnameOverride": "use hostName", "bindAddress": "it stays as it is", "detectLocal": "it stays as it is", "detectLocalMode": "it stays as it is",
	"conntrack": "kube-proxy may not write the sysctls of the host", "winkernel": "nodes run Linux", "windowsRunAsService": "nodes run Linux",
}

// ProxyConfig says what fields of a KubeProxyConfiguration, as JSON, must be.
func ProxyConfig(s string) string {
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &given); err != nil {
		return "must be fields with values, such as {mode: nftables}"
	}
	for name := range given {
		if remedy, kept := keptProxyFields[name]; kept {
			return fmt.Sprintf("%s cannot be set here: %s", name, remedy)
		}
	}
	var c proxyv1.KubeProxyConfiguration
	if err := yaml.UnmarshalStrict([]byte(s), &c); err != nil {
		return "must be fields of a KubeProxyConfiguration: " + plainly(err)
	}
	switch {
	case c.ClientConnection.Kubeconfig != "":
		return "clientConnection.kubeconfig cannot be set here: it stays as it is"
	case c.IPTables.LocalhostNodePorts != nil && *c.IPTables.LocalhostNodePorts:
		return "iptables.localhostNodePorts cannot be true: kube-proxy may not write the sysctls of the host"
	case c.Mode != "" && c.Mode != "iptables" && c.Mode != "nftables":
		return fmt.Sprintf("mode must be iptables or nftables, not %q", c.Mode)
	}
	return ""
}
