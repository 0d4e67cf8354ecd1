package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// applyNetwork applies the pod network before any other pod, because no pod
// starts without it. On a joining control plane it does nothing.
func applyNetwork(h *local.Host) step.Step {
	switch {
	case h.OwnNetwork() || h.Config.CNIPlugin == config.CNINone || h.Config.Join:
		return step.Step{}
	case h.Config.CNIPlugin == config.CNIFlannel:
		return parts.Addons(h).ApplyManifest("apply the pod network", parts.Addons(h).Flannel)
	}
	return parts.ApplyManifest(h, "apply the pod network", parts.NetworkManifest(h))
}
