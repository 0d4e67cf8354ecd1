package config

import (
	"math"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"
)

// HostImages are what the nodes of a cluster of containers can be made of.
var HostImages = []string{"docker-28.5", "docker-26.1", "docker-29", "docker-ce", "firewalls", "sysv", "openrc"}

// nodeSettings are what one node differs in from the others: a host verb's
// flags, and the fields of one entry of nodes.
var nodeSettings = sharing(Setting{Group: GroupHost, Verbs: both | OneNode, Change: Freely}, []Setting{
	{
		Field: "nodeLabels", Flag: "node-label", Help: "labels of this node: KEY=VALUE, comma separated",
		check: on(nodeLabels),
	},
	{Field: "nodeTaints", Flag: "node-taint", Help: "taints of this node: KEY=VALUE:EFFECT, comma separated"},
	{
		Field: "nodeCPUs", Flag: "node-cpus", Help: "processors that pods on this node may use, such as 1.5 (empty: all)",
		as: cpus,
	},
	{
		Field: "nodeMemory", Flag: "node-memory", Help: "memory that pods on this node may use, such as 2Gi (empty: all)",
		as: amount,
	},
	{
		Field: "nodeDisk", Flag: "node-disk",
		Help: "disk that pods on this node may use for what they do not keep, such as 10Gi (empty: all)", as: amount,
	},
	{
		Field: "kubeletConfig", Flag: "kubelet-config",
		Help: "further fields of the kubelet's configuration, as JSON or YAML: {maxPods: 50}", as: mapping,
		check: on(components.KubeletConfig),
	},
})

// containerSettings are the settings of a cluster whose nodes are containers.
var containerSettings = []Setting{{
	Field: "name", Flag: "name", Group: GroupContainers, Default: "kube", Verbs: ClusterUp | Named, Change: Never,
	Help: "name of the cluster; its nodes are called NAME-master-1, NAME-worker-1 and so on", check: on(clusterName),
}, {
	Field: "masters", Flag: "masters", Group: GroupContainers, Default: "1", Verbs: ClusterUp, Change: Freely,
	Help: "control-plane nodes", check: on(between(1, math.MaxInt, "must be a whole number, 1 or more")),
}, {
	Field: "workers", Flag: "workers", Group: GroupContainers, Also: []string{"num-nodes"}, Default: "1",
	Verbs: ClusterUp, Change: Freely,
	Help:  "workers; with 0 the control plane takes pods",
	check: on(between(0, math.MaxInt, "must be a whole number, 0 or more")),
}, {
	Field: "dindSubnet", Flag: "dind-subnet", Group: GroupContainers, Default: "10.192.0.0/16",
	Verbs: ClusterUp | BareHosts, Change: Never,
	Help: "network of the nodes; if it is not given, the first free one from the default on",
}, {
	Field: "hostImage", Flag: "host-image", Group: GroupContainers, Default: "docker-28.5",
	Verbs: ClusterUp | OneNode | BareHosts, Change: Never,
	Help: "what the nodes are made of", Values: HostImages,
}, {
	Field: "nodePorts", Flag: "node-port", Group: GroupContainers, Verbs: OneNode, Change: Never,
	Help: "ports of the engine's machine that lead to the node: [ADDRESS:]PORT:NODEPORT[/udp], comma separated; without ADDRESS, 127.0.0.1",
}, {
	Field: "nodeMounts", Flag: "node-mount", Group: GroupContainers, Verbs: OneNode, Change: Never,
	Help: "directories of the engine's machine on the node: PATH:NODEPATH[:ro], comma separated",
}, {
	Field: "k8sDir", Flag: "k8s-dir", Group: GroupImages, Verbs: ClusterUp | Build, Change: EachRun,
	Help: "checkout of Kubernetes to build, instead of its release",
}, {
	Field: "dockerHost", Flag: "docker-host", Group: GroupContainers, Verbs: ClusterUp | Named | Engine,
	Change: EachRun,
	Help:   "Docker engine that runs the nodes: unix:///path, tcp://host:port or ssh://user@host (empty: the engine of the docker command)",
}, {
	Field: "dockerContext", Flag: "docker-context", Group: GroupContainers, Verbs: ClusterUp | Named | Engine,
	Change: EachRun,
	Help:   "docker context that names the engine",
}}
