package config

import "github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"

// Components are the settings of single components. The components of one kind have
// the same settings on all hosts.
type Components struct {
	APIServer, ControllerManager, Scheduler, Etcd, Kubelet Component

	KubeProxy KubeProxy
}

// Component is a component that is configured with flags.
type Component struct{ ExtraArgs Arguments }

// KubeProxy is configured with a file only.
type KubeProxy struct {
	Config string // JSON
}

// controlPlanes are the commands with settings of components that run on
// control planes only.
const controlPlanes = Master | Preflight | ClusterUp

// componentSettings are the block "components", and what several components
// share.
var componentSettings = []Setting{
	{
		Field: "components.apiserver.extraArgs", Flag: "apiserver-arg", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "further flag of kube-apiserver, NAME=VALUE; may be repeated",
		at:   arguments(func(c *Config) *Arguments { return &c.Components.APIServer.ExtraArgs }),
	},
	{
		Field: "components.controllerManager.extraArgs", Flag: "controller-manager-arg", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "further flag of kube-controller-manager, NAME=VALUE; may be repeated",
		at:   arguments(func(c *Config) *Arguments { return &c.Components.ControllerManager.ExtraArgs }),
	},
	{
		Field: "components.scheduler.extraArgs", Flag: "scheduler-arg", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "further flag of kube-scheduler, NAME=VALUE; may be repeated",
		at:   arguments(func(c *Config) *Arguments { return &c.Components.Scheduler.ExtraArgs }),
	},
	{
		Field: "components.etcd.extraArgs", Flag: "etcd-arg", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "further flag of etcd, NAME=VALUE; may be repeated",
		at:   arguments(func(c *Config) *Arguments { return &c.Components.Etcd.ExtraArgs }),
	},
	{
		Field: "components.kubelet.extraArgs", Flag: "kubelet-arg", Group: GroupComponents, Verbs: hosts, Shared: true, Change: OnCluster,
		Help: "further flag of the kubelets, NAME=VALUE; may be repeated",
		at:   arguments(func(c *Config) *Arguments { return &c.Components.Kubelet.ExtraArgs }),
	},
	{
		Field: "components.kubeProxy.config", Flag: "kube-proxy-config", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help:  "further fields of the configuration of kube-proxy, as JSON or YAML: {mode: nftables}",
		at:    mapping(func(c *Config) *string { return &c.Components.KubeProxy.Config }),
		check: components.ProxyConfig,
	},
	{
		Field: "featureGates", Flag: "feature-gates", Group: GroupComponents, Verbs: hosts, Shared: true, Change: OnCluster,
		Help: "alpha and beta features of Kubernetes to switch: NAME=true or NAME=false, comma separated",
		at:   gates(func(c *Config) *map[string]bool { return &c.FeatureGates }),
	},
}

// component is a program with flags that the user may set.
type component struct {
	name  string // of the program
	field string
	args  Arguments
}

func (c Config) components() []component {
	return []component{
		{"kube-apiserver", "components.apiserver.extraArgs", c.Components.APIServer.ExtraArgs},
		{"kube-controller-manager", "components.controllerManager.extraArgs", c.Components.ControllerManager.ExtraArgs},
		{"kube-scheduler", "components.scheduler.extraArgs", c.Components.Scheduler.ExtraArgs},
		{"etcd", "components.etcd.extraArgs", c.Components.Etcd.ExtraArgs},
		{"kubelet", "components.kubelet.extraArgs", c.Components.Kubelet.ExtraArgs},
	}
}
