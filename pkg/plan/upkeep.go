package plan

import (
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// renewalLimit includes the wait for other control planes.
const renewalLimit = 10 * time.Minute

// Upkeep returns the steps of this host's plan that the agent may apply by
// itself, each with the events that may have undone it. They change no setting.
// Docker is restarted for two reasons only: its network is on another subnet
// than this host, and its chains in the firewall are gone.
//
//	overlay      etcd ──▶ flanneld ──▶ routes
//	main Docker  CNI config ──▶ docker0 ──▶ Docker's chains ──▶ kubelet ──▶ pods
//	the others   need nothing that another duty repairs, or wait for it
func (h *Host) Upkeep(past *outages) agent.Groups {
	role := h.saved.Role
	return agent.Groups{
		"balancer": {{Step: h.balancer(role).Known(), On: agent.Tick}},
		"overlay": {
			{Step: h.ownEtcd(), On: agent.BootstrapDocker},
			{Step: h.ifOurs(h.flanneld().Start()), On: agent.BootstrapDocker | agent.Link | agent.Files},
			{Step: h.ifOurs(h.flanneld().Overlay()), On: agent.BootstrapDocker | agent.Link | agent.Route | agent.Lease},
			// It replaces the containers of this group. Every few minutes is often enough.
			{Step: h.renewDue(), On: agent.Files, Limit: renewalLimit},
			{Step: h.followRotation(), On: agent.Cluster, Limit: renewalLimit},
		},
		"main Docker": {
			{Step: h.ifOurs(h.cni()), On: agent.Link | agent.Tick},
			{Step: h.ifOurs(h.bridge().Follow()), On: agent.MainDocker | agent.BootstrapDocker | agent.Link | agent.Files},
			{Step: h.ifOurs(h.bridge().Open()), On: agent.MainDocker | agent.Link | agent.Firewall},
			{Step: h.kubelet(role).Start(), On: agent.MainDocker},
			{Step: h.kubelet(role).RestartAfter(past.end), On: agent.API},
			{Step: h.ifOurs(h.keepPods()), On: agent.MainDocker | agent.Link},
		},
		"kernel":     {{Step: h.keepSysctls(), On: agent.Link | agent.Forwarding | agent.Tick}},
		"Services":   {{Step: h.runtime().FollowServices(), On: agent.Firewall}},
		"host ports": {{Step: h.ifOurs(h.runtime().KeepHostPorts()), On: agent.Firewall}},
		"images":     h.loadedImages(role),
		"cluster":    h.ownShare(),
	}.Compact()
}

// ownShare is what a control plane does after the nodes have changed.
func (h *Host) ownShare() (duties []agent.Duty) {
	for _, s := range h.shared() {
		duties = append(duties, agent.Duty{Step: s, On: agent.Cluster})
	}
	return duties
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
