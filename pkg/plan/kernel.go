package plan

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// kernelProblem returns a problem for each missing cgroup controller and
// kernel module.
func (h *Host) kernelProblem(ctx context.Context) error {
	var errs []error
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !host.HasCgroup(controller) {
			errs = append(errs, &step.Problem{Name: "cgroup-" + controller,
				Text:   "the kernel's cgroup controller " + controller + " is disabled",
				Remedy: "enable it at boot (cgroup_enable=" + controller + ")"})
		}
	}
	return errors.Join(append(errs, h.network().ModuleProblems(ctx))...)
}

// keepModule reports whether a module must stay loaded: this host is a
// container, which shares the kernel, or the user's configuration loads the
// module at boot, or the main Docker needs br_netfilter, which it loads only
// when it starts.
func (h *Host) keepModule(ctx context.Context, module string) bool {
	return host.InContainer() || slices.Contains(h.Files.BootModules(), module) ||
		module == "br_netfilter" && h.bridge().NeedsNetfilter(ctx)
}
