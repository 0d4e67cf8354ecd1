// Package parts contains the domain values of a host: etcd, flanneld, docker0, the kubelet, the
// control plane. New builds them once from the resolved settings. The package also contains the
// steps that plans, renewals and the agent share.
package parts

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Parts are the domain values of a host, in one group for each part of a plan. Only stages that use
// most groups take Parts. Other functions take single groups or values.
type Parts struct {
	Docker       maindocker.Daemon
	Bootstrap    bootstrapdocker.Dockerd
	Balancer     balancer.Balancer
	Agent        agent.Installation
	Join         Join
	Cluster      ClusterAPI
	Images       Images
	Etcd         Etcd
	Network      PodNetwork
	Node         NodeComponents
	ControlPlane ControlPlane
	Addons       Addons
}

// New returns the parts of a host of a role.
func New(h *local.Host, role string) Parts {
	docker := maindocker.Daemon{Files: h.Files, Units: h.Units, Engine: local.MainDocker}
	p := Parts{
		Docker: docker,
		Bootstrap: bootstrapdocker.Dockerd{
			Files: h.Files, Units: h.Units, KeepImages: h.Config.KeepImages, WhileMainStopped: docker.WhileStopped,
		},
		Balancer: newBalancer(h, role),
		Join:     Join{Joining: h.Join, Wanted: h.Config.Join, user: etcd.HostUser(h.Config.HostName)},
		Cluster:  ClusterAPI{local.BalancedAPI(h)},
		Images:   newImages(h, role),
		Etcd:     newEtcd(h),
	}
	p.Agent = agent.Installation{
		Files: h.Files, Units: h.Units, Program: local.Binary,
		Records: p.Balancer.Records, Answers: p.Balancer.Listens, Dirs: []string{balancer.StateDir},
	}
	p.Network = newNetwork(h, role, docker)
	p.ControlPlane = newControlPlane(h, p.Etcd.Member)
	p.Node = newNodeComponents(h, role, p.ControlPlane.PKI)
	p.Addons = newAddons(h)
	return p
}

// InForce returns the parts of a host with the role that is saved on it.
func InForce(h *local.Host) Parts { return New(h, h.Saved.Role) }

// Join is how this host joins a cluster.
type Join struct {
	*join.Joining
	Wanted bool // a control plane joins; each worker does

	user string // of etcd
}

// FlannelCertificate is the step with which a worker requests flannel's
// certificate from a control plane, which admits the worker at the same time.
func (j Join) FlannelCertificate() step.Step { return j.FetchFlannel(j.user) }

// keepModule returns the function that reports whether a module must stay loaded: this host is a
// container, which shares the kernel, or the user's configuration loads the
// module at boot, or the main Docker needs br_netfilter, which it loads only
// when it starts.
func keepModule(files host.Files, docker maindocker.Daemon) func(context.Context, string) bool {
	return func(ctx context.Context, module string) bool {
		return host.InContainer() || slices.Contains(kernel.BootModules(files), module) ||
			module == "br_netfilter" && docker.NeedsNetfilter(ctx)
	}
}
