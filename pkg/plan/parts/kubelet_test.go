package parts

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// TestTheLabelsAndTaintsOfANode: a control plane takes pods only if the user wants it, and the settings, which
// a host saves, do not get the labels and taints of its role.
func TestTheLabelsAndTaintsOfANode(t *testing.T) {
	own := config.Taint{Taint: corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		role           string
		noDedicated    bool
		labels, taints []string
	}{
		"control plane": {
			local.ControlPlane, false, []string{"disk", node.ControlPlaneLabel}, []string{"own", kubelet.ControlPlaneTaint},
		},
		"control plane, mixed": {local.ControlPlane, true, []string{"disk", node.ControlPlaneLabel}, []string{"own"}},
		"worker":               {local.Worker, false, []string{"disk"}, []string{"own"}},
	} {
		cfg := config.Default()
		cfg.NoDedicated = c.noDedicated
		cfg.NodeLabels = append(make([]config.Label, 0, 4), config.Label{Key: "disk", Value: "ssd"})
		cfg.NodeTaints = append(make([]config.Taint, 0, 4), own)
		got := labelsAndTaints(c.role, cfg.NodeLabels, cfg.NodeTaints, !cfg.NoDedicated)
		var labels, taints []string
		for _, l := range got.Labels {
			labels = append(labels, l.Key)
		}
		for _, one := range got.Taints {
			taints = append(taints, one.Key)
		}
		if !slices.Equal(labels, c.labels) || !slices.Equal(taints, c.taints) || got.ByKubelet != (c.role == local.Worker) {
			t.Errorf("%s: labels %q, taints %q, own %t", name, labels, taints, got.ByKubelet)
		}
		if beyond := cfg.NodeTaints[:cap(cfg.NodeTaints)][1].Key +
			cfg.NodeLabels[:cap(cfg.NodeLabels)][1].Key; beyond != "" {
			t.Errorf("%s: the settings share memory with those of the node: %s", name, beyond)
		}
	}
}
