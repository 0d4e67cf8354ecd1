package plan

import (
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Upkeep returns the steps of this host's plan that the agent may apply by
// itself, each with the events that may have undone it. They change no setting.
// Docker is restarted for two reasons only: its network is on another subnet
// than this host, and its chains in the firewall are gone.
func (h *Host) Upkeep() []agent.Duty {
	role := h.saved.Role
	duties := []agent.Duty{
		{Step: h.balancer(role).Known(), On: agent.Tick},
		{Step: h.ownEtcd(), On: agent.BootstrapDocker},
		{Step: h.ifOurs(h.flanneld().Start()), On: agent.BootstrapDocker | agent.Link},
		{Step: h.ifOurs(h.flanneld().Overlay()), On: agent.BootstrapDocker | agent.Link | agent.Route | agent.Lease},
		{Step: h.keepSysctls(), On: agent.Link | agent.Forwarding | agent.Tick},
		{Step: h.ifOurs(h.cni()), On: agent.Link | agent.Tick},
		{Step: h.ifOurs(h.bridge().Follow()), On: agent.MainDocker | agent.BootstrapDocker | agent.Link},
		{Step: h.runtime().FollowServices(), On: agent.Firewall},
		{Step: h.ifOurs(h.runtime().KeepHostPorts()), On: agent.Firewall},
		{Step: h.ifOurs(h.bridge().Open()), On: agent.MainDocker | agent.Link | agent.Firewall},
		{Step: h.kubelet(role).Start(), On: agent.MainDocker},
		{Step: h.ifOurs(h.keepPods()), On: agent.MainDocker | agent.Link},
	}
	duties = append(duties, h.loadedImages(role)...)
	for _, s := range h.shared() {
		duties = append(duties, agent.Duty{Step: s, On: agent.Cluster})
	}
	return agent.Compact(duties)
}

// loadedImages brings images back that were removed, and CNI plugins, from the
// bundle or the registry that the settings name.
func (h *Host) loadedImages(role string) []agent.Duty {
	const limit = 10 * time.Minute // a registry may be far away
	h = h.withImages(h.imagesOf(role))
	duties := []agent.Duty{
		{Step: h.loadBootstrap("flannel"), On: agent.BootstrapDocker, Limit: limit},
		{Step: h.loadMain(), On: agent.MainDocker, Limit: limit},
		{Step: h.loadContainerd(), On: agent.Containerd, Limit: limit},
		{Step: h.source().InstallCNIPlugins(), On: agent.Files, Limit: limit},
	}
	if role == Master {
		duties = append(duties, agent.Duty{Step: h.loadBootstrap("etcd"), On: agent.BootstrapDocker, Limit: limit})
	}
	return duties
}

// ownEtcd is the etcd of a control plane.
func (h *Host) ownEtcd() step.Step {
	if h.saved.Role != Master {
		return step.Step{}
	}
	return h.member()
}
