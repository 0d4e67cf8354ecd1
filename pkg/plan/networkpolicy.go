package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const namedPolicies = 3

// UnenforcedPolicies returns the problem that NetworkPolicies exist and the
// network plugin does not enforce them [network-policy]. It returns nil if no
// API server answers, and on a worker, which may not list them.
func UnenforcedPolicies(ctx context.Context, h *local.Host) error {
	plugin := h.Config.CNIPlugin
	if h.Saved.Role != local.ControlPlane || plugin != extension.CNIBridge && plugin != extension.CNIFlannel {
		return nil
	}
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	client, err := parts.InForce(h).Cluster.As(controlplane.AdminConf).Client()
	if err != nil {
		return nil
	}
	found, err := client.NetworkingV1().NetworkPolicies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil || len(found.Items) == 0 {
		return nil
	}
	return unenforced(plugin, found.Items)
}

func unenforced(plugin string, policies []networkingv1.NetworkPolicy) *step.Problem {
	var names []string
	for _, p := range policies[:min(namedPolicies, len(policies))] {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	text := "the network plugin " + plugin + " does not enforce NetworkPolicy " + strings.Join(names, ", ")
	if more := len(policies) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return &step.Problem{
		Name: "network-policy", Firm: true, Text: text,
		Remedy: "delete it, or set up the cluster with a plugin that enforces it, such as `--cni-plugin calico`",
	}
}
