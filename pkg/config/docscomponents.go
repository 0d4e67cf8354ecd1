package config

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
# featureGates: {ContextualLogging: true}
`

// componentsReference is the part of docs/configuration.md about components.
const componentsReference = `
## Component settings

` + "```yaml" + `
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
featureGates: {ContextualLogging: true}
` + "```" + `

The same as flags: ` + "`--apiserver-arg event-ttl=2h --apiserver-arg enable-admission-plugins=AlwaysPullImages`" + ` and so on, ` +
	"`--feature-gates ContextualLogging=true`" + `.

- A name is a flag that the --help of the component lists at its version. Any other name is refused before anything is changed.
- A value replaces the one that kube-bootstrap sets. enable-admission-plugins and controllers add to its list.
- A flag that the cluster or its safety depends on is refused with the setting to use instead: addresses, ports, certificates, authentication,
  authorization, encryption, storage.
- The API server can read files below /etc/kubernetes/apiserver and /etc/kubernetes/pki of its host, the other components none of the user.
- A setting that is given replaces the earlier one as a whole: an empty value, ` + "`--apiserver-arg=`" + `, removes all further flags.
- featureGates are the alpha and beta feature gates of the Kubernetes version. Every component of Kubernetes gets them.

On a running cluster, run ` + "`kube-bootstrap master`" + ` with the new settings on one control plane after the other: each run ends when the
components of its host are ready. If a component ends with a value, the run fails with the last line of its log, and ` + "`kube-bootstrap master`" +
	` without the value restores the host.
`
