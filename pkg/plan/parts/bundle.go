package parts

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// fetchBundle is the step with which a host that joins fetches the bundle of a control plane, if
// it lacks images. The bundle stays on the host, so that a killed run continues the transfer, and
// that the agent restores images while no control plane answers. A further control plane passes
// it on.
func fetchBundle(h *local.Host, role string) step.Step {
	return step.Step{
		ID: "fetch-bundle", Name: "fetch images from a control plane",
		Check: func(ctx context.Context) (step.Diff, error) {
			if !local.NeedsBundle(h) || !local.LacksImages(ctx, h, role) {
				return nil, nil
			}
			what := fmt.Sprintf("Kubernetes %s for %s", h.Versions.Kubernetes, h.Config.Arch)
			return step.Diff{"write " + offline.HostPath + ": " + what}, nil
		},
		Apply: func(ctx context.Context) error { return local.Peers(h).Fetch(ctx, h.Files, offline.HostPath) },
		Undo: func(context.Context) error {
			if h.Config.KeepImages {
				return nil
			}
			return h.Files.Drop(append(h.Files.Match(offline.HostPath+".*"), offline.HostPath)...)
		},
	}
}
