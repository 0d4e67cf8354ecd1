package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// marks returns the labels and taints of this host's node.
func (h *Host) marks(role string) node.Marks {
	m := node.Marks{Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Own: role == Worker}
	if role == Master {
		m.Labels = append(slices.Clone(m.Labels), node.ControlPlaneLabel+"=")
	}
	if role == Master && !h.Config.NoDedicated {
		m.Taints = append(slices.Clone(m.Taints), kubelet.ControlPlaneTaint+":"+string(corev1.TaintEffectNoSchedule))
	}
	return m
}

// taintProblem refuses changed taints on a worker, because the API server
// does not allow a kubelet to change the taints of its registered node. Once
// an administrator has changed the node, the worker accepts the setting.
func (h *Host) taintProblem(ctx context.Context, role string) error {
	before, want := h.saved.Config.NodeTaints, h.Config.NodeTaints
	if role != Worker || !h.installed() || slices.Equal(before, want) {
		return nil
	}
	has, known, err := h.node(kubelet.Kubeconfig).Taints(ctx)
	if err != nil || !known {
		return err // a new node registers with the taints
	}
	add, remove := node.TaintChanges(has, before, want)
	if len(add)+len(remove) == 0 {
		return nil
	}
	words := add
	for _, word := range remove {
		words = append(words, word+"-")
	}
	return &step.Problem{
		Name:   "node-taint",
		Text:   fmt.Sprintf("nodeTaints: %q, and %q before: a worker cannot change the taints of its node", strings.Join(want, ","), strings.Join(before, ",")),
		Remedy: fmt.Sprintf("run `kubectl taint node --overwrite %s %s` as an administrator, then this command again", h.Config.HostName, strings.Join(words, " ")),
	}
}

// Mark applies labels and taints to another node of the cluster. It must run
// on a control plane. It does nothing if the node has not joined yet, because
// it will register with them.
func (h *Host) Mark(ctx context.Context, name string, labels, taints []string) error {
	other := h.node(controlplane.AdminConf)
	other.Name = name
	if _, known, err := other.Taints(ctx); err != nil || !known {
		return err
	}
	marks := node.Marks{Labels: labels, Taints: taints}
	return (&step.Runner{}).Do(ctx, step.Plan{{other.Mark(marks)}}.Within(h.timeout()))
}
