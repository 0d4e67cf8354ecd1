package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// taintProblem refuses changed taints on a worker, because the API server
// does not allow a kubelet to change the taints of its registered node. Once
// an administrator has changed the node, the worker accepts the setting.
func taintProblem(ctx context.Context, h request) error {
	before, want := h.Saved.Config.NodeTaints, h.Config.NodeTaints
	if h.role != local.Worker || !h.Saved.Installed() || slices.Equal(before, want) {
		return nil
	}
	has, known, err := parts.Node(h.Host, kubelet.Kubeconfig).Taints(ctx)
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
