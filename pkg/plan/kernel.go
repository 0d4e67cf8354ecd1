package plan

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// kernelProblem says which cgroup controllers and modules the kernel lacks.
func (h *Host) kernelProblem(ctx context.Context) error {
	var errs []error
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !host.HasCgroup(controller) {
			errs = append(errs, &step.Problem{Name: "cgroup-" + controller,
				Text:   "the kernel's cgroup controller " + controller + " is off",
				Remedy: "switch it on at boot (cgroup_enable=" + controller + ")"})
		}
	}
	return errors.Join(append(errs, h.network().ModuleProblems(ctx))...)
}

// keepModule: a kernel that this host shares with others is not ours alone, a
// module that is loaded at boot has another owner, and the main Docker asks for
// netfilter only when it starts.
func (h *Host) keepModule(ctx context.Context, module string) bool {
	return host.InContainer() || slices.Contains(h.Files.BootModules(), module) ||
		module == "br_netfilter" && h.bridge().NeedsNetfilter(ctx)
}
