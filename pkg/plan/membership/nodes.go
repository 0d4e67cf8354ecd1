package membership

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ExpiredNodes returns the problem that workers were away for longer than the
// certificates of their kubelets are valid [node-expired]. It returns nil if no API
// server answers. A worker may not list nodes.
func ExpiredNodes(ctx context.Context, own parts.Etcd) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	controlPlanes, err := own.ControlPlaneNames(ctx)
	if err != nil {
		return nil
	}
	nodes, err := node.List(ctx, renewal.State.API)
	if err != nil {
		return nil
	}
	since := time.Now().Add(-cmp.Or(controlplane.ReadLeafLife(own.Member.Data.Files), pki.LeafLife))
	return expiredNodes(nodes, controlPlanes, since)
}

// expiredNodes names the nodes that have reported nothing since then. Control
// planes issue the certificates of their kubelets themselves.
func expiredNodes(nodes []corev1.Node, controlPlanes []string, since time.Time) error {
	var names, commands []string
	for i := range nodes {
		reports := node.Ready(&nodes[i]) || !node.LastReport(&nodes[i]).Before(since)
		if reports || slices.Contains(controlPlanes, nodes[i].Name) {
			continue
		}
		names = append(names, nodes[i].Name)
		commands = append(commands, "`kube-bootstrap token create --node "+nodes[i].Name+"`")
	}
	if len(names) == 0 {
		return nil
	}
	return &step.Problem{
		Name: "node-expired", Firm: true,
		Text: "the certificates of the kubelets of these workers have expired, because the workers were off: " +
			strings.Join(names, ", "),
		Remedy: "run " + strings.Join(commands, " and ") + " here, and the command that it prints on that worker",
	}
}

// Label applies labels and taints to another node of the cluster. It must run
// on a control plane. It does nothing if the node has not joined yet, because
// it will register with them.
func Label(ctx context.Context, name string, labels []config.Label, taints []config.Taint) error {
	other := parts.ObjectOf(name, controlplane.AdminConf)
	if _, known, err := other.Taints(ctx); err != nil || !known {
		return err
	}
	marks := node.LabelsAndTaints{Labels: labels, Taints: taints}
	return (&step.Runner{}).Do(ctx, step.Plan{{other.Label(marks)}}.Within(step.Limit(ctx)))
}
