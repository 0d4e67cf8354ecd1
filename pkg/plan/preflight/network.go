package preflight

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// networkProblem returns a problem if the manifest of the CNI plugin cannot
// be applied.
func networkProblem(_ context.Context, h request) error {
	if h.role != local.Master || h.Config.Join || h.OwnNetwork() || h.Config.CNIPlugin == config.CNINone || h.Config.CNIPlugin == config.CNIFlannel {
		return nil
	}
	if err := parts.NetworkManifest(h.Host).Check(); err != nil {
		return &step.Problem{Name: "cni-plugin", Text: fmt.Sprintf("cniPlugin: %s: %v", h.Config.CNIPlugin, err),
			Remedy: "give the path or the URL of the plugin's manifest, or one of bridge, flannel, calico, none"}
	}
	return nil
}
