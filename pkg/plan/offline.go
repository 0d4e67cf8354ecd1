package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Load returns the plan that loads all images into the stores of this host.
// The plans of master and worker begin with the same steps.
func Load(h *local.Host) step.Plan {
	main, pods := parts.Load(h)
	return step.Plan{
		{remember(h, local.Loaded)},
		{parts.MainDocker(h).Resume(), parts.RegistryFiles(h), parts.CRI(h).Enable()},
		{parts.Bootstrap(h).Containerd()},
		{parts.Bootstrap(h).Start(), h.Source().InstallCNIPlugins()},
		{pods, main, parts.LoadBootstrap(h, "etcd"), parts.LoadBootstrap(h, "flannel")},
		{madeDirs(h)},
		{accept(h, local.Loaded)},
	}.Within(h.Timeout())
}
