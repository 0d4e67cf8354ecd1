// Package plan contains the plans of a control plane and a worker: all steps
// in their order. turndown undoes them in reverse, except as podNetwork draws, and status only
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
	p := parts.InForce(h)
	if err := errors.Join(kubelet.ShareMounts(h.Files), p.Node.ServiceRoute.Restore()); err != nil {
		return err
	}
	if !h.ManagesNetwork() {
		return nil
	}
	if err := p.Network.Overlay.Boot(ctx); err != nil {
		return err
	}
	return p.Network.CNI().Apply(ctx)
}

// Load returns the plan that loads all images into the stores of this host.
// The plans of master and worker begin with the same steps.
func Load(h *local.Host) step.Plan {
	p := parts.New(h, local.Loaded)
	main, pods := p.Images.Load()
	return step.Plan{
		{remember(h, local.Loaded)},
		{p.Docker.Resume(), p.Images.RegistryFiles(), p.Node.CRI.Enable(), installProgram(h.Files)},
		{p.Bootstrap.Containerd()},
		{
			p.Bootstrap.Start(), loadBootstrap(p.Images, "etcd"), loadBootstrap(p.Images, "flannel"),
			main, pods, p.Images.Source.InstallCNIPlugins(),
		},
		{madeDirs(h.Files)},
		{accept(h, local.Loaded)},
	}.Within(h.Timeout())
}
