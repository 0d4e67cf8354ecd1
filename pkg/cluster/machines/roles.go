package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/joining"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// failures are the errors of machines.
type failures struct {
	mu  sync.Mutex
	all []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.all = append(f.all, err)
	}
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return nil
	}
	return &Partly{f.all}
}

// prepare sends the program to all machines, gives Docker to those without, and runs the preflight of
// the new ones. Their problems are an error before any machine gets a role.
func (r *run) prepare(ctx context.Context, chosen []Machine) error {
	errs := r.together(chosen, func(m Machine) error {
		path, err := r.options.Program(ctx, r.options.Bundle, r.facts[m.Spec.Name].Arch)
		if err != nil {
			return err
		}
		put := upload{path, programFile, 0o755}.step(r.provider, m.Spec.Name, r.uploads)
		docker, err := r.installDocker(m)
		if err == nil {
			err = r.apply(ctx, m.Spec.Name, append(step.Plan{{put}}, docker...))
		}
		if err != nil {
			return err
		}
		return r.preflight(ctx, m)
	})
	return errors.Join(errs...)
}

// together calls do for machines, for as many at the same time as the options allow.
func (r *run) together(all []Machine, do func(Machine) error) []error {
	slots := make(chan struct{}, cmp.Or(r.options.Concurrency, DefaultConcurrency))
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, m := range all {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(m)
		})
	}
	running.Wait()
	return errs
}

// DefaultConcurrency is the default of Options.Concurrency.
const DefaultConcurrency = 30

// preflight runs `kube-bootstrap preflight` on a machine that is part of no cluster yet. What a new
// cluster cannot tell a worker yet is checked when it joins.
func (r *run) preflight(ctx context.Context, m Machine) error {
	f := r.facts[m.Spec.Name]
	if f.installed() {
		return nil
	}
	args := []string{r.provider.ProgramPath(), "preflight", "master", "-o", "json", "--host-name=" + m.Spec.Name, "--ip-address=" + f.Addr.String()}
	args = append(args, r.options.MasterArgs...)
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

// laterProblems are the problems of a machine without images. It gets them with its role.
var laterProblems = []string{"images"}

// further sets up the other control planes, one after the other, because each is a new member of etcd.
// It reports whether one has joined.
func (r *run) further(ctx context.Context, join *joining.Joining, chosen []Machine) (joined bool) {
	var fresh []step.Step
	for _, m := range chosen {
		if m.Spec.Role != topology.ControlPlane || m.Spec.Name == r.leader.Spec.Name {
			continue
		}
		if r.facts[m.Spec.Name].installed() {
			r.failed.add(r.apply(ctx, m.Spec.Name, step.Plan{{r.again(join, m)}}))
			continue
		}
		fresh = append(fresh, join.Step(join.Nodes.Node(m.Spec.Name)))
	}
	if len(fresh) == 0 {
		return false
	}
	defer join.Revoke(ctx)
	if err := r.session.Run(ctx, step.Plan{{join.OpenControlPlanes()}}); err != nil {
		r.failed.add(err)
		return false
	}
	for _, one := range fresh {
		err := r.session.Run(ctx, step.Plan{{one}})
		r.failed.add(err)
		joined = joined || err == nil
	}
	r.failed.add(r.session.Run(ctx, step.Plan{{join.CloseControlPlanes()}}))
	return joined
}

func (r *run) workers(ctx context.Context, join *joining.Joining, chosen []Machine) {
	workers := slices.DeleteFunc(slices.Clone(chosen), func(m Machine) bool { return m.Spec.Role == topology.ControlPlane })
	r.together(workers, func(m Machine) error {
		one := join.Step(join.Nodes.Node(m.Spec.Name))
		if r.facts[m.Spec.Name].installed() && !r.marksDiffer(m) {
			one = r.again(join, m)
		}
		r.failed.add(r.apply(ctx, m.Spec.Name, step.Plan{{one}}))
		return nil
	})
}

// marksDiffer reports whether a worker gets other labels or taints, which a control plane applies.
func (r *run) marksDiffer(m Machine) bool {
	is := r.facts[m.Spec.Name].Settings
	return !slices.Equal(is.NodeLabels, m.Settings.NodeLabels) || !slices.Equal(is.NodeTaints, m.Settings.NodeTaints)
}

// again returns the step that runs the role of a node that has joined. It needs no token.
func (r *run) again(join *joining.Joining, m Machine) step.Step {
	n, args := join.Nodes.Node(m.Spec.Name), []string{"worker"}
	more := r.options.WorkerArgs
	if n.Role == topology.ControlPlane {
		args, more = []string{"master", "--join"}, r.options.MasterArgs
		if join.Nodes.OnlyControlPlanes() {
			args = append(args, "--no-dedicated")
		}
	}
	args = append(args, "--master-ip", join.First.Addr.String())
	args = slices.Concat(args, more, n.Spec.Args)
	return joining.RoleStep(n, func(ctx context.Context, n topology.ClusterNode) error {
		return remote.Run(ctx, r.session, n.Name, args, nil)
	})
}

// removeFiles removes what Up has sent to a machine.
func removeFiles(ctx context.Context, on access.Connection) error {
	return on.Exec(ctx, host.Command{Args: []string{"rm", "-rf", programDir}})
}
