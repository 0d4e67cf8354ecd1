package preflight

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
)

func podProblems(ctx context.Context, h request) error {
	if h.Saved.Installed() {
		return nil
	}
	return errors.Join(containerd.MissingProblem(), oldContainerd(ctx, h), containerd.CNIProblems(h.Files, h.OwnNetwork()), parts.Pods(h.Host).Problems(ctx))
}

// oldContainerd returns a problem if containerd is older than the oldest
// version that the wanted Kubernetes supports. It skips a CRI socket that the
// user configured, which may belong to another runtime.
func oldContainerd(ctx context.Context, h request) error {
	_, m, err := catalog.Kubernetes(h.Config.KubernetesVersion)
	if err != nil || h.Config.CRISocket != "" {
		return err
	}
	return containerd.OldProblem(ctx, m.Containerd)
}
