package preflight

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
)

func podProblems(ctx context.Context, h request) error {
	if h.Installed() {
		return nil
	}
	return errors.Join(parts.Runtime(h.Host).MissingProblem(), oldContainerd(ctx, h), parts.Runtime(h.Host).CNIProblems(h.OwnNetwork()), parts.Runtime(h.Host).PodProblems(ctx))
}

// oldContainerd returns a problem if containerd is older than the oldest
// version that the wanted Kubernetes supports. It skips a CRI socket that the
// user configured, which may belong to another runtime.
func oldContainerd(ctx context.Context, h request) error {
	_, m, err := catalog.Kubernetes(h.Config.KubernetesVersion)
	if err != nil || h.Config.CRISocket != "" {
		return err
	}
	return parts.Runtime(h.Host).OldProblem(ctx, m.Containerd)
}
