package preflight

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// kernelProblem returns a problem for each missing cgroup controller and
// kernel module.
func kernelProblem(ctx context.Context, h request) error {
	var errs []error
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !kernel.HasCgroup(controller) {
			errs = append(errs, &step.Problem{Name: "cgroup-" + controller,
				Text:   "the kernel's cgroup controller " + controller + " is disabled",
				Remedy: "enable it at boot (cgroup_enable=" + controller + ")"})
		}
	}
	return errors.Join(append(errs, parts.Network(h.Host).ModuleProblems(ctx))...)
}
