package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// marks returns the labels and taints of this host's node.
func marks(h *local.Host, role string) node.Marks {
	m := node.Marks{Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Own: role == local.Worker}
	if role == local.Master {
		m.Labels = append(slices.Clone(m.Labels), node.ControlPlaneLabel+"=")
	}
	if role == local.Master && !h.Config.NoDedicated {
		m.Taints = append(slices.Clone(m.Taints), kubelet.ControlPlaneTaint+":"+string(corev1.TaintEffectNoSchedule))
	}
	return m
}
