package membership

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Mark applies labels and taints to another node of the cluster. It must run
// on a control plane. It does nothing if the node has not joined yet, because
// it will register with them.
func Mark(ctx context.Context, h *local.Host, name string, labels, taints []string) error {
	other := parts.Node(h, controlplane.AdminConf)
	other.Name = name
	if _, known, err := other.Taints(ctx); err != nil || !known {
		return err
	}
	marks := node.Marks{Labels: labels, Taints: taints}
	return (&step.Runner{}).Do(ctx, step.Plan{{other.Mark(marks)}}.Within(h.Timeout()))
}
