// Package upgrades takes all nodes of a cluster through the steps of an upgrade, one control plane after the
// other and then the workers. On each node it runs the same commands that an administrator would run.
//
//	Apply     images on all nodes ──▶ control planes, one by one
//	Rollback  control planes, one by one ──▶ workers
//	Finish    end of the emulation, one by one ──▶ etcd, kubelets of control planes ──▶ workers, drained
package upgrades

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// bundlePath is where the nodes get the bundle of the new version.
const bundlePath = "/var/lib/kube-bootstrap/upgrade.tar.zst"

// Options describe an upgrade of a cluster.
type Options struct {
	session.Selection
	To          string     // release or minor version; "": the next one
	Bundle      string     // of this machine; "": the nodes find the images themselves
	Drain       node.Drain // of the workers
	Unavailable int        // workers that are drained at the same time
	Holder      string     // of the lock of the upgrade
}

// run is an upgrade of one cluster.
type run struct {
	options Options
	session *session.Session
	api     kube.Connect
	nodes   []topology.ClusterNode
	short   map[string]bool // workloads that lacked pods before a drain
}

// Apply installs the new version on all nodes, which still emulate the old one.
func Apply(ctx context.Context, o Options, emit func(session.HostEvent)) error {
	return do(ctx, o, emit, run.applyPlan)
}

// Rollback returns all nodes to the old version.
func Rollback(ctx context.Context, o Options, emit func(session.HostEvent)) error {
	return do(ctx, o, emit, run.rollbackPlan)
}

// Finish completes the upgrade of all nodes.
func Finish(ctx context.Context, o Options, emit func(session.HostEvent)) error {
	return do(ctx, o, emit, run.finishPlan)
}

func do(ctx context.Context, o Options, emit func(session.HostEvent), plan func(run) step.Plan) error {
	lock := &upgrade.Lock{Holder: o.Holder}
	lock.At("cluster upgrade")
	following := func(e session.HostEvent) {
		if e.Kind == step.Started {
			lock.At(e.Step)
		}
		emit(e)
	}
	scope := session.Requirements{Needs: session.Nodes, Lock: session.ClusterLock, Emit: following}
	return session.Do(ctx, o.Selection, scope, func(s *session.Session, state topology.State) error {
		lock.API = apiserver.Connect(ctx, s, "")
		r := run{options: o, session: s, api: lock.API, nodes: state.Topology(s.Name).Nodes(), short: map[string]bool{}}
		return r.locked(ctx, lock, plan(r))
	})
}

// locked runs a plan while this machine holds the lock of the cluster. It then removes the bundle from the nodes that
// no longer need it. A run that was killed may have left such a bundle.
func (r run) locked(ctx context.Context, lock *upgrade.Lock, plan step.Plan) error {
	take := step.Plan{{lock.Prepare()}, {lock.TakeStep()}}
	if err := r.take(ctx, take); err != nil {
		return err
	}
	held := lock.Keep(ctx)
	defer lock.Release()
	err := r.session.Run(held, plan)
	return errors.Join(err, r.session.Run(context.WithoutCancel(ctx), r.dropBundle()))
}

// lockLimit is the time for the objects of the lock. After it, the API counts as unreachable.
const lockLimit = 20 * time.Second

// take takes the lock. Without an API server, only an upgrade that has begun continues: a killed run may have
// left the only API server ended.
func (r run) take(ctx context.Context, take step.Plan) error {
	err := r.session.Run(ctx, take.Within(lockLimit))
	if err == nil || ctx.Err() != nil || len(step.Problems(err)) > 0 {
		return err
	}
	for _, n := range r.of(topology.ControlPlane) {
		if begun, asked := r.unfinished(ctx, n); asked == nil && begun {
			return nil
		}
	}
	return err
}

// dropBundle removes the bundle from all nodes without an unfinished upgrade: `finish` may need it.
func (r run) dropBundle() step.Plan {
	var drops []step.Step
	for _, n := range r.nodes {
		title := "remove the bundle from " + n.Name
		unneeded := func(ctx context.Context) (bool, error) {
			unfinished, err := r.unfinished(ctx, n)
			if err != nil || unfinished {
				return false, err
			}
			return exists(ctx, r.session.Node(n.Name), bundlePath)
		}
		drops = append(drops, step.When(step.IDOf("drop-bundle", n.Name), title, title, unneeded,
			func(ctx context.Context) error {
				return access.Run(ctx, r.session.Node(n.Name), "rm", "-f", bundlePath)
			}))
	}
	return step.Plan{drops}
}

func (r run) applyPlan() step.Plan {
	var puts, loads []step.Step
	args := []string{"upgrade", "apply"}
	if r.options.To != "" {
		args = append(args, "--to", r.options.To)
	}
	if r.options.Bundle != "" {
		args = append(args, "--bundle", bundlePath)
	}
	for _, n := range r.nodes {
		if r.options.Bundle != "" {
			file := remote.FileCopy{From: r.options.Bundle, To: bundlePath, Mode: 0o600}
			id := step.IDOf("put-bundle", n.Name)
			puts = append(puts, remote.Put(r.session, id, "put the bundle on "+n.Name, n.Name, file))
		}
		loads = append(loads, step.Always(step.IDOf("load", n.Name), "load the images on "+n.Name,
			r.host(n, append(slices.Clone(args), "--images-only"))))
	}
	plan := step.Plan{puts, loads}
	for _, n := range slices.Concat(r.of(topology.ControlPlane), r.of(topology.Worker)) {
		plan = append(plan, []step.Step{step.Always(step.IDOf("apply", n.Name), "upgrade "+n.Name, r.host(n, args))})
	}
	return plan
}

func (r run) rollbackPlan() step.Plan {
	args := []string{"upgrade", "rollback"}
	return append(r.each(topology.ControlPlane, "rollback", args), r.each(topology.Worker, "rollback", args)...)
}

// finishPlan runs `finish` twice on control planes: the first time it ends the emulation. A control plane that
// finds all others without emulation completes the upgrade at once, and has nothing to do the second time.
func (r run) finishPlan() step.Plan {
	args := []string{"upgrade", "finish"}
	plan := slices.Concat(
		r.each(topology.ControlPlane, "end-emulation", args), r.each(topology.ControlPlane, "finish", args))
	for _, some := range r.groups() {
		var drains, finishes, uncordons []step.Step
		for _, n := range some {
			object := node.Node{API: r.api, Name: n.Name}
			drains = append(drains, r.whileUnfinished(n, object.Drain(r.options.Drain)))
			finishes = append(finishes, r.command("finish", n, args))
			uncordons = append(uncordons, object.Uncordon())
		}
		plan = append(plan, []step.Step{r.complete(some)}, drains, finishes, uncordons, []step.Step{r.settled(some)})
	}
	return append(plan, []step.Step{r.record()})
}

// groups divides the workers into groups that are drained together.
func (r run) groups() [][]topology.ClusterNode {
	workers := r.of(topology.Worker)
	return slices.Collect(slices.Chunk(workers, max(1, r.options.Unavailable)))
}

func (r run) of(role topology.Role) []topology.ClusterNode {
	return slices.DeleteFunc(slices.Clone(r.nodes), func(n topology.ClusterNode) bool { return n.Role != role })
}

// each runs a command on all nodes of a role, one after the other.
func (r run) each(role topology.Role, id string, args []string) (plan step.Plan) {
	for _, n := range r.of(role) {
		plan = append(plan, []step.Step{r.command(id, n, args)})
	}
	return plan
}

// command is a step for a node whose upgrade is unfinished.
func (r run) command(id string, n topology.ClusterNode, args []string) step.Step {
	text := strings.Join(args, " ") + " on " + n.Name
	return step.When(step.IDOf(id, n.Name), text, "run kube-bootstrap "+text, func(ctx context.Context) (bool, error) {
		return r.unfinished(ctx, n)
	}, r.host(n, args)).Waiting()
}

// whileUnfinished returns the step, which does nothing on a node whose upgrade is complete.
func (r run) whileUnfinished(n topology.ClusterNode, s step.Step) step.Step {
	check := s.Check
	s.Check = func(ctx context.Context) (step.Diff, error) {
		unfinished, err := r.unfinished(ctx, n)
		if err != nil || !unfinished {
			return nil, err
		}
		return check(ctx)
	}
	return s
}

// unfinished reports whether a node has the record of an upgrade. A node that does not answer is an error.
func (r run) unfinished(ctx context.Context, n topology.ClusterNode) (bool, error) {
	return exists(ctx, r.session.Node(n.Name), upgrade.File.Path)
}

// exists reports whether a node has a file.
func exists(ctx context.Context, on access.Executor, path string) (bool, error) {
	const missing = 1 // exit code of test
	err := access.Run(ctx, on, "test", "-e", path)
	if failed, ok := errors.AsType[*access.ExitError](err); ok && failed.Code == missing {
		return false, nil
	}
	return err == nil, err
}

func (r run) host(n topology.ClusterNode, args []string) func(context.Context) error {
	args = append(slices.Clone(args), "--"+upgrade.HolderFlag, r.options.Holder)
	return func(ctx context.Context) error { return remote.Run(ctx, r.session, n.Name, args, nil) }
}
