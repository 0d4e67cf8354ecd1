package machines

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/joining"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines/transfer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// failures are the errors of machines.
type failures struct {
	mu  sync.Mutex
	all []error
}

func (f *failures) add(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range errs {
		if err != nil {
			f.all = append(f.all, err)
		}
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

// DefaultConcurrency is the default of Options.Concurrency.
const DefaultConcurrency = 30

// concurrently calls do for machines, for as many at the same time as the options allow. It returns the
// errors in the order of the machines.
func (r *run) concurrently(all []Machine, do func(Machine) error) []error {
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

// setUpFirst sets up the first control plane, without which no other machine can join.
func (r *run) setUpFirst(ctx context.Context, ready []Machine) error {
	if !slices.ContainsFunc(ready, r.isFirst) {
		if r.exists {
			return nil
		}
		return r.failed.err()
	}
	err := r.apply(ctx, r.first.Spec.Name, r.firstPlan())
	r.failed.add(err)
	if err != nil && !r.exists {
		return r.failed.err()
	}
	return nil
}

func (r *run) isFirst(m Machine) bool { return m.Spec.Name == r.first.Spec.Name }

// firstPlan returns the plan of the first control plane, which is the source of the images for all others.
func (r *run) firstPlan() step.Plan {
	first := r.join.First
	if r.same[first.Name] {
		return nil
	}
	files, args := r.manifests(), r.command(r.first)
	if r.options.Bundle != "" {
		files = append(files, r.files.sending(r.bundle(), first.Name))
		args = append(args, "--bundle", programDir+"/"+bundleFile)
	}
	return step.Plan{files, {r.roleStep(first, args)}}
}

func (r *run) bundle() transfer.File {
	return transfer.File{From: r.options.Bundle, To: programDir + "/" + bundleFile, Mode: 0o644}
}

// manifests returns the steps that send the files of the first control plane.
func (r *run) manifests() (steps []step.Step) {
	on := r.first.Spec.Name
	for _, f := range r.options.Files {
		title := "put " + filepath.Base(f.From) + " on " + on
		steps = append(steps, remote.Put(r.session, step.IDOf("put", f.To), title, on, f))
	}
	return steps
}

// furtherControlPlanes sets up the other control planes, one after the other, because each is a member
// of etcd. It reports whether one has joined.
func (r *run) furtherControlPlanes(ctx context.Context, ready []Machine) (joined bool) {
	var fresh []step.Step
	for _, m := range ready {
		if m.Spec.Role != topology.ControlPlane || r.isFirst(m) || r.same[m.Spec.Name] {
			continue
		}
		n := r.join.Nodes.Node(m.Spec.Name)
		if r.facts[m.Spec.Name].Complete {
			r.failed.add(r.apply(ctx, n.Name, step.Plan{{r.roleStep(n, r.command(m))}}))
			continue
		}
		fresh = append(fresh, r.join.Step(n))
	}
	return len(fresh) > 0 && r.joinControlPlanes(ctx, fresh)
}

// joinControlPlanes lets control planes join with one token. It reports whether one has joined.
func (r *run) joinControlPlanes(ctx context.Context, fresh []step.Step) (joined bool) {
	defer r.join.Revoke()
	if err := r.session.Run(ctx, step.Plan{{r.join.OpenControlPlanes()}}); err != nil {
		r.failed.add(err)
		return false
	}
	for _, one := range fresh {
		err := r.session.Run(ctx, step.Plan{{one}})
		r.failed.add(err)
		joined = joined || err == nil
	}
	r.failed.add(r.session.Run(ctx, step.Plan{{r.join.CloseControlPlanes()}}))
	return joined
}

func (r *run) workers(ctx context.Context, ready []Machine) {
	workers := slices.DeleteFunc(slices.Clone(ready), func(m Machine) bool {
		return m.Spec.Role == topology.ControlPlane || r.same[m.Spec.Name]
	})
	r.concurrently(workers, func(m Machine) error {
		n := r.join.Nodes.Node(m.Spec.Name)
		one := r.join.Step(n)
		if r.joined(m) {
			one = r.roleStep(n, r.command(m))
		}
		r.failed.add(r.apply(ctx, n.Name, step.Plan{{one}}))
		return nil
	})
}

// joined reports whether a machine needs no token: its last run has succeeded, and no control plane
// must apply other labels or taints.
func (r *run) joined(m Machine) bool {
	f := r.facts[m.Spec.Name]
	return f.Complete && (f.Role == config.RoleControlPlane || !labelsDiffer(f, m))
}

// labelsDiffer reports whether a worker gets other labels or taints, which a control plane applies.
func labelsDiffer(f Facts, m Machine) bool {
	is := f.Settings
	return !slices.Equal(is.NodeLabels, m.Settings.NodeLabels) ||
		!slices.Equal(is.NodeTaints, m.Settings.NodeTaints)
}

// command returns the host command of a machine without a token: that of the first control plane, and
// of nodes that have joined. A host knows which control plane it has joined.
func (r *run) command(m Machine) []string {
	args := r.join.Nodes.Node(m.Spec.Name).Spec.Args
	if m.Spec.Role == topology.Worker {
		first := r.join.First.Addr
		if known := r.facts[m.Spec.Name].Settings.MasterIP; known.IsValid() {
			first = known
		}
		return slices.Concat([]string{"worker", "--master-ip", first.String()}, r.options.WorkerArgs, args)
	}
	command := []string{"master"}
	if r.join.Nodes.OnlyControlPlanes() {
		command = append(command, "--no-dedicated")
	}
	return slices.Concat(command, r.options.MasterArgs, args)
}

// roleStep returns the step that runs a host command.
func (r *run) roleStep(n topology.ClusterNode, args []string) step.Step {
	return joining.RoleStep(n, func(ctx context.Context, n topology.ClusterNode) error {
		return remote.Run(ctx, r.session, n.Name, args, nil)
	})
}
