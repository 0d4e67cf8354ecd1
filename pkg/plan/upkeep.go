package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Upkeep returns the steps of this host's plan that the agent may apply by
// itself, each with the events that may have undone it. They change no setting,
// and restart neither Docker.
func (h *Host) Upkeep() []agent.Duty {
	duties := []agent.Duty{
		{Step: h.ownEtcd(), On: agent.BootstrapDocker},
		{Step: h.ifOurs(h.flanneld().Start()), On: agent.BootstrapDocker | agent.Link},
		{Step: h.ifOurs(h.bridge().Upkeep()), On: agent.MainDocker | agent.Link | agent.Firewall},
		{Step: h.kubelet(h.saved.Role).Start(), On: agent.MainDocker},
	}
	for _, s := range h.shared() {
		duties = append(duties, agent.Duty{Step: s, On: agent.Cluster})
	}
	return agent.Compact(duties)
}

// ownEtcd is the etcd of a control plane.
func (h *Host) ownEtcd() step.Step {
	if h.saved.Role != Master {
		return step.Step{}
	}
	return h.member()
}
