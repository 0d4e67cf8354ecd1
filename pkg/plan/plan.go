// Package plan contains the plans of a control plane and a worker: all steps
// in their order. turndown undoes them in reverse, see podNetwork, and status only
// checks them. Its packages know the domain packages, and pass results of one, such as
// the lease, to others. See docs/architecture.md.
package plan

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RestartsDocker reports whether a run is restarting Docker, or was
// interrupted while it did. Docker waits for the end of Boot in its start.
func RestartsDocker() bool { return maindocker.Restarting(host.Files{}) }

// Boot adapts daemon.json, the CNI configuration and the firewall to the
// lease before Docker starts. It never starts or stops Docker.
func Boot(ctx context.Context, h *local.Host) error {
	ctx = h.Limited(ctx)
	if err := errors.Join(kubelet.ShareMounts(h.Files), parts.ServiceRoute(h).Restore()); err != nil {
		return err
	}
	if !h.OwnNetwork() {
		return nil
	}
	if err := parts.Overlay(h).Boot(ctx); err != nil {
		return err
	}
	return parts.CNI(h).Apply(ctx)
}

// Load returns the plan that loads all images into the stores of this host.
// The plans of master and worker begin with the same steps.
func Load(h *local.Host) step.Plan {
	bootstrap := parts.Bootstrap(h)
	main, pods := parts.Load(h)
	return step.Plan{
		{remember(h, local.Loaded)},
		{parts.MainDocker(h).Resume(), parts.RegistryFiles(h), parts.CRI(h).Enable()},
		{bootstrap.Containerd()},
		{
			bootstrap.Start(), loadBootstrap(h, "etcd"), loadBootstrap(h, "flannel"),
			main, pods, h.Source().InstallCNIPlugins(),
		},
		{madeDirs(h)},
		{accept(h, local.Loaded)},
	}.Within(h.Timeout())
}
