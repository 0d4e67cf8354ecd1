package upkeep

import (
	"context"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// shared returns the steps that adapt a control plane to the number of
// control planes: leader election is on if there are several, and the addons then
// use no single API server. They also move a CoreDNS pod to a second node.
func shared(h *local.Host) []step.Step {
	pods := parts.StaticPods(h)
	spread := []step.Step{parts.Addons(h).Spread()}
	switch {
	case h.Saved.Role != local.Master || !h.Files.Exists(controlplane.ManifestDir+"/kube-controller-manager.yaml"):
		return nil
	case controlplane.Electing(h.Files) != pods.Single:
		return spread
	}
	return slices.Concat([]step.Step{pods.Early(), pods.Late(), parts.ApplyAddons(h)}, parts.ContainedAddons(h), spread)
}

// Keep applies the steps that a control plane needs after a change of the
// nodes.
func Keep(ctx context.Context, h *local.Host) error {
	var stages step.Plan
	for _, s := range shared(h) {
		stages = append(stages, []step.Step{s})
	}
	return (&step.Runner{}).Do(ctx, stages.Within(h.Timeout()))
}
