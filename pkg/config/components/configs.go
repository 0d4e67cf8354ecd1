package components

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	proxyv1 "k8s.io/kube-proxy/config/v1alpha1"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// KubeletConfig says what fields of a KubeletConfiguration, as JSON, must be.
func KubeletConfig(s string) string {
	return fieldsOf("KubeletConfiguration", s, "{maxPods: 50}", &kubeletv1.KubeletConfiguration{})
}

// ProxyConfig says what fields of a KubeProxyConfiguration, as JSON, must be.
func ProxyConfig(s string) string {
	var c proxyv1.KubeProxyConfiguration
	if wrong := fieldsOf("KubeProxyConfiguration", s, "{mode: nftables}", &c); wrong != "" {
		return wrong
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

// fieldsOf reads fields of a kind and says what they must be.
func fieldsOf(kind, s, example string, into any) string {
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &given); err != nil {
		return "must be fields with values, such as " + example
	}
	for name := range given {
		if reason := kept().Fields[kind].of(name); reason != "" {
			return fmt.Sprintf("%s cannot be set here: %s", name, reason)
		}
	}
	if err := yaml.UnmarshalStrict([]byte(s), into); err != nil {
		return "must be fields of a " + kind + ": " + plainly(err)
	}
	return ""
}

// AuditPolicy says what an audit policy, as JSON, must be: what the API server
// loads, without unknown fields, which it would ignore.
func AuditPolicy(s string) string {
	var given auditv1.Policy
	if err := yaml.UnmarshalStrict([]byte(s), &given); err != nil {
		return "must be the fields of an audit Policy: " + plainly(err)
	}
	if given.APIVersion != auditv1.SchemeGroupVersion.String() || given.Kind != "Policy" {
		return "must have the lines \"apiVersion: " + auditv1.SchemeGroupVersion.String() + "\" and \"kind: Policy\""
	}
	if _, err := policy.LoadPolicyFromBytes([]byte(s)); err != nil {
		return "is no policy that the API server accepts: " + err.Error()
	}
	return ""
}

// plainly removes the words of the decoder from an error.
func plainly(err error) string {
	words := strings.Split(err.Error(), ": ")
	return strings.Join(words[slices.IndexFunc(words, func(w string) bool {
		return !strings.HasPrefix(w, "error ")
	}):], ": ")
}
