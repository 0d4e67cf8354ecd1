package reference

import (
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// componentsTemplate is the part of the file that `config init` prints about
// components.
const componentsTemplate = `
# Further flags of components, by name without dashes:
# components:
#   apiserver:
#     extraArgs: {event-ttl: 2h}
#   controllerManager:
#     extraArgs: {node-monitor-grace-period: 30s}
#   scheduler:
#     extraArgs: {v: 2}
#   etcd:
#     extraArgs: {snapshot-count: 20000}
#   kubelet:
#     extraArgs: {max-pods: 50}
#   kubeProxy:
#     config: {mode: nftables} # fields of its KubeProxyConfiguration
# featureGates: {ContextualLogging: true}

# An OpenID provider whose tokens the API server accepts:
# oidc:
#   issuerURL: https://accounts.example.com
#   clientID: kubernetes
#   usernameClaim: email
#   groupsClaim: groups
#   caFile: /root/provider-ca.crt

# The policy of the API server's audit log, as fields (auditPolicy) or as a file:
# auditPolicyFile: /root/audit.yaml
`

// componentsReference is the part of docs/configuration.md about components.
func componentsReference() string {
	return strings.NewReplacer("'", "`", "MINORS", strings.Join(catalog.Listed(), ", ")).Replace(componentsText)
}

const componentsText = `
## Component settings

'''yaml
apiVersion: kube-bootstrap.dev/v1alpha1
kind: Cluster
components:
  apiserver:
    extraArgs: {event-ttl: 2h, enable-admission-plugins: AlwaysPullImages}
  controllerManager:
    extraArgs: {node-monitor-grace-period: 30s}
  scheduler:
    extraArgs: {v: 2}
  etcd:
    extraArgs: {snapshot-count: 20000}
  kubelet:
    extraArgs: {max-pods: 50}
  kubeProxy:
    config: {mode: nftables}
featureGates: {ContextualLogging: true}
oidc:
  issuerURL: https://accounts.example.com
  clientID: kubernetes
  usernameClaim: email
  groupsClaim: groups
auditPolicy:
  apiVersion: audit.k8s.io/v1
  kind: Policy
  rules:
  - level: Metadata
'''

As flags: '--apiserver-arg event-ttl=2h --apiserver-arg enable-admission-plugins=AlwaysPullImages', '--feature-gates ContextualLogging=true',
'--kube-proxy-config "{mode: nftables}"', '--audit-policy-file audit.yaml'.

- A name in extraArgs is a flag that the --help of the component lists at its version. Another name is refused before anything is changed.
  The names of Kubernetes MINORS are recorded. For any other version, extraArgs and featureGates are refused.
- A value replaces the value that kube-bootstrap sets. Values of enable-admission-plugins and controllers are added to its list.
- A flag that the cluster or its safety depends on is refused, with the setting to use instead: addresses, ports, certificates, authentication,
  authorization, encryption, storage.
- The API server can read the files below /etc/kubernetes/apiserver and /etc/kubernetes/pki of its host. The other components cannot read files
  of the user.
- kube-proxy reads only its configuration file. config contains fields of a KubeProxyConfiguration, which replace the fields of kube-bootstrap.
- featureGates are alpha and beta feature gates of the Kubernetes version. The components of Kubernetes and kube-proxy get them, on all hosts.
- A setting replaces its earlier value as a whole. An empty value, such as '--apiserver-arg=', removes all further flags.

Tokens of the provider in oidc authenticate users besides certificates. Names of users and groups begin with oidc: in the cluster, or with
usernamePrefix and groupsPrefix. A token whose user or group begins with system: is refused. A binding gives such a user rights:
'kubectl create clusterrolebinding anna --clusterrole view --user oidc:anna@example.com'.

auditPolicy replaces the policy of kube-bootstrap. It is checked as the API server checks it, and an unknown field is refused. The API server of
each control plane reads it from /etc/kubernetes/apiserver/audit.yaml. caFile and auditPolicyFile are read once: their content is kept with the
other settings and handed to a control plane that joins.

On a running cluster, run 'kube-bootstrap master' with the new settings on one control plane after the other, and 'kube-bootstrap worker' with
new --kubelet-arg and --feature-gates on the workers. In a cluster of containers, 'cluster up' with the new settings runs one control plane
after the other. Each run ends when the components of its host are ready. If a component exits because of a value, the run fails with the last
line of its log, and 'kube-bootstrap master' without the value restores the host.
`
