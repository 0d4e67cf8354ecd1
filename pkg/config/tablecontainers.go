package config

import (
	"math"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"
)

// HostImages are the variants of the host image of a cluster of containers.
var HostImages = []string{"docker-28.5", "docker-26.1", "docker-29", "docker-ce", "firewalls", "ssh", "sysv",
	"openrc"}

// nodeSettings are the settings that differ between nodes: flags of master and worker, and fields of an entry
// of nodes.
var nodeSettings = sharing(Setting{Group: GroupHost, Verbs: both | NodeAdd, Change: Freely}, []Setting{
	{
		Field: "nodeLabels", Flag: "node-label", Help: "labels of this node: KEY=VALUE, comma separated",
		check: on(nodeLabels),
	},
	{Field: "nodeTaints", Flag: "node-taint", Help: "taints of this node: KEY=VALUE:EFFECT, comma separated"},
	{
		Field: "nodeCPUs", Flag: "node-cpus", Help: "CPUs that pods on this node may use, such as 1.5 (empty: all)",
		as: cpus,
	},
	{
		Field: "nodeMemory", Flag: "node-memory",
		Help: "memory that pods on this node may use, such as 2Gi (empty: all)",
		as:   amount,
	},
	{
		Field: "nodeDisk", Flag: "node-disk",
		Help: "ephemeral storage that pods on this node may use, such as 10Gi (empty: all)", as: amount,
	},
	{
		Field: "kubeletConfig", Flag: "kubelet-config",
		Help: "additional fields of the kubelet's configuration, as JSON or YAML: {maxPods: 50}", as: mapping,
		check: on(components.KubeletConfig),
	},
})

// containerSettings are the settings of a cluster whose nodes are containers.
var containerSettings = []Setting{{
	Field: "name", Flag: "name", Group: GroupContainers, Default: "kube", Verbs: ClusterUp | Named, Change: Never,
	Help: "name of the cluster; its nodes are called NAME-master-1, NAME-worker-1 and so on", check: on(clusterName),
}, {
	Field: "masters", Flag: "masters", Group: GroupContainers, Default: "1", Verbs: ClusterUp, Change: Freely,
	Help: "number of control planes", check: on(between(1, math.MaxInt, "must be a whole number, 1 or more")),
}, {
	Field: "workers", Flag: "workers", Group: GroupContainers, Also: []string{"num-nodes"}, Default: "1",
	Verbs: ClusterUp, Change: Freely,
	Help:  "number of workers; with 0, the control planes run pods",
	check: on(between(0, math.MaxInt, "must be a whole number, 0 or more")),
}, {
	Field: "dindSubnet", Flag: "dind-subnet", Group: GroupContainers, Default: "10.192.0.0/16",
	Verbs: ClusterUp | BareHosts, Change: Never,
	Help: "network of the nodes; if it is not set, the first free network from the default on",
}, {
	Field: "hostImage", Flag: "host-image", Group: GroupContainers, Default: "docker-28.5",
	Verbs: ClusterUp | NodeAdd | BareHosts, Change: Never,
	Help: "host image of the nodes", Values: HostImages,
}, {
	Field: "nodePorts", Flag: "node-port", Group: GroupContainers, Verbs: NodeAdd, Change: Never,
	Help: "ports of the engine's machine that lead to the node: [ADDRESS:]PORT:NODEPORT[/udp], comma separated; " +
		"without ADDRESS, 127.0.0.1",
}, {
	Field: "nodeMounts", Flag: "node-mount", Group: GroupContainers, Verbs: NodeAdd, Change: Never,
	Help: "directories of the engine's machine on the node: PATH:NODEPATH[:ro], comma separated",
}, {
	Field: "k8sDir", Flag: "k8s-dir", Group: GroupImages, Verbs: ClusterUp | Build, Change: EachRun,
	Help: "checkout of Kubernetes that is built instead of the release",
}, {
	Field: "dockerHost", Flag: "docker-host", Group: GroupContainers, Verbs: ClusterUp | Named | Engine,
	Change: EachRun,
	Help: "Docker engine that runs the nodes: unix:///path, tcp://host:port or ssh://user@host " +
		"(empty: the engine of the docker command)",
}, {
	Field: "dockerContext", Flag: "docker-context", Group: GroupContainers, Verbs: ClusterUp | Named | Engine,
	Change: EachRun,
	Help:   "Docker context of the engine",
}}
