package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// prepare sends the program to all machines, installs Docker where it is missing, and runs the preflight
// of new machines. It returns the machines that are ready. If a machine has a problem, no machine gets a
// role, and the files that were sent to new machines are removed.
func (r *run) prepare(ctx context.Context, chosen []Machine) (ready []Machine, err error) {
	defer r.files.end()
	errs := r.concurrently(chosen, func(m Machine) error {
		if err := errors.Join(r.putProgram(ctx, m), r.installDocker(ctx, m)); err != nil {
			return err
		}
		return r.preflight(ctx, m)
	})
	var problems []error
	for i, err := range errs {
		_, off := errors.AsType[*ssh.Unreachable](err)
		switch {
		case err == nil:
			ready = append(ready, chosen[i])
		case !off && len(step.Problems(err)) > 0:
			problems = append(problems, err)
		default:
			r.failed.add(err)
		}
	}
	if len(problems) > 0 || ctx.Err() != nil {
		return nil, errors.Join(append(problems, context.Cause(ctx), r.removeSent(ctx))...)
	}
	return ready, nil
}

// putProgram brings the program to a machine that does not have it.
func (r *run) putProgram(ctx context.Context, m Machine) error {
	name := m.Spec.Name
	via, err := r.files.relay(ctx, r.facts[name].Arch)
	if err != nil {
		return err
	}
	differs, err := r.files.differs(ctx, via.program, name)
	if err != nil || !differs {
		return err
	}
	if !r.facts[name].installed() {
		r.sent.Store(name, true)
	}
	put := func(ctx context.Context) error { return r.files.put(ctx, via, name) }
	return r.apply(ctx, name, step.Plan{{r.files.step(via.program, name, put)}})
}

// removeSent removes what this run has sent to new machines.
func (r *run) removeSent(ctx context.Context) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	var errs []error
	for name := range r.sent.Range {
		errs = append(errs, removeFiles(ctx, r.provider.Node(name.(string))))
	}
	return errors.Join(errs...)
}

// removeFiles removes what Up has sent to a machine.
func removeFiles(ctx context.Context, on access.Connection) error {
	return on.Exec(ctx, host.Command{Args: []string{"rm", "-rf", programDir}})
}

// preflight runs `kube-bootstrap preflight` on a machine that is part of no cluster yet. Settings
// that a node gets from its cluster are checked when the node joins.
func (r *run) preflight(ctx context.Context, m Machine) error {
	if r.facts[m.Spec.Name].installed() {
		return nil
	}
	args := slices.Concat([]string{r.provider.ProgramPath(), "preflight"}, r.checkable(m), []string{"-o", "json"})
	out, err := access.Output(ctx, r.provider.Node(m.Spec.Name), args...)
	var report struct {
		Items []struct{ Problems []step.Problem }
	}
	if json.Unmarshal([]byte(out), &report) != nil {
		return fmt.Errorf("machine %s: preflight: %w", m.Spec.Name, err)
	}
	var errs []error
	for _, check := range report.Items {
		for _, p := range check.Problems {
			if p.Name == "" || slices.Contains(laterProblems, p.Name) {
				continue
			}
			p.Text = "machine " + m.Spec.Name + ": " + p.Text
			errs = append(errs, &p)
		}
	}
	return errors.Join(errs...)
}

// checkable returns the role and the flags with which preflight checks a new machine. It omits flags that
// name files which the machine gets later, and --no-dedicated, which preflight does not know.
func (r *run) checkable(m Machine) []string {
	return slices.DeleteFunc(r.command(m), func(arg string) bool {
		return arg == "--no-dedicated" || strings.HasPrefix(arg, "--no-dedicated=") ||
			len(r.options.Files) > 0 && (strings.HasPrefix(arg, "--addons=") || strings.HasPrefix(arg, "--cni-plugin="))
	})
}

// laterProblems are the problems of a machine without images and without a token. It gets both with its
// role.
var laterProblems = []string{"images", "join-settings"}
