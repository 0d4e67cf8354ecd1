package plan

import (
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// renewalLimit includes the wait for renewals of other control planes.
const renewalLimit = 10 * time.Minute

// Upkeep returns the steps that the agent applies by itself, each with the
// events after which it may be necessary. They change no setting. The agent
// restarts Docker for two reasons only: docker0 is in another subnet than the
// lease, or Docker's firewall chains are gone.
//
//	overlay      etcd ──▶ flanneld ──▶ routes
//	main Docker  CNI config ──▶ docker0 ──▶ Docker's chains ──▶ kubelet ──▶ pods
//	other groups are independent, or wait for one of these
func (h *Host) Upkeep(past *outages) agent.Groups {
	role := h.saved.Role
	return agent.Groups{
		"balancer": {{Step: h.balancer(role).Known(), On: agent.Tick}},
		"overlay": {
			{Step: h.ownEtcd(), On: agent.BootstrapDocker},
			{Step: h.onDocker0(h.flanneld().Start()), On: agent.BootstrapDocker | agent.Link | agent.Files},
			{Step: h.onDocker0(h.flanneld().Overlay()), On: agent.BootstrapDocker | agent.Link | agent.Route | agent.Lease},
			// renewDue replaces the containers of this group, so it belongs to it.
			{Step: h.renewDue(), On: agent.Files, Limit: renewalLimit},
			{Step: h.followRotation(), On: agent.Cluster, Limit: renewalLimit},
		},
		"main Docker": {
			{Step: h.onDocker0(h.cni()), On: agent.Link | agent.Tick},
			{Step: h.onDocker0(h.bridge().Follow()), On: agent.MainDocker | agent.BootstrapDocker | agent.Link | agent.Files},
			{Step: h.onDocker0(h.bridge().Open()), On: agent.MainDocker | agent.Link | agent.Firewall},
			{Step: h.kubelet(role).Start(), On: agent.MainDocker},
			{Step: h.kubelet(role).RestartAfter(past.end), On: agent.API},
			{Step: h.runtime().RestartProxyAfter(past.end), On: agent.API},
			{Step: h.onDocker0(h.keepPods()), On: agent.MainDocker | agent.Link},
		},
		"hosts": {
			{Step: h.onDocker0(h.listed()), On: agent.Link},
			{Step: h.onDocker0(h.hostFilter(role).Step()), On: agent.Firewall | agent.Lease | agent.Cluster},
		},
		"kernel":     {{Step: h.keepSysctls(), On: agent.Link | agent.Forwarding | agent.Tick}},
		"Services":   {{Step: h.runtime().FollowServices(), On: agent.Firewall}},
		"host ports": {{Step: h.onDocker0(h.runtime().KeepHostPorts()), On: agent.Firewall}},
		"images":     h.loadedImages(role),
		"cluster":    h.ownShare(),
	}.Compact()
}

// ownShare returns the duties of a control plane after a change of the nodes.
func (h *Host) ownShare() (duties []agent.Duty) {
	for _, s := range h.shared() {
		duties = append(duties, agent.Duty{Step: s, On: agent.Cluster})
	}
	return duties
}

// loadedImages returns the duties that restore deleted images and CNI plugins
// from the bundle or the registry.
func (h *Host) loadedImages(role string) []agent.Duty {
	const limit = 10 * time.Minute // includes a slow registry
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

// listed returns the step that keeps the addresses of a control plane current
// in the list.
func (h *Host) listed() step.Step {
	if h.saved.Role != Master {
		return step.Step{}
	}
	return h.etcd().List()
}

// ownEtcd returns the etcd step of a control plane.
func (h *Host) ownEtcd() step.Step {
	if h.saved.Role != Master {
		return step.Step{}
	}
	return h.member()
}
