package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/joining"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Options describe a cluster of machines. The machines are those of the provider.
type Options struct {
	session.Selection
	Concurrency int    // workers that are set up at the same time
	Only        string // set up only this node; "": all
	Bundle      string // the images, for the first control plane; "": it finds them itself
	// Program returns the path of kube-bootstrap for an architecture. The bundle may contain it.
	Program    func(ctx context.Context, bundle, arch string) (path string, err error)
	Docker     DockerSource      // of the machines that have none
	Files      []remote.FileCopy // that the first control plane gets, such as manifests
	MasterArgs []string          // further arguments of `kube-bootstrap master`
	WorkerArgs []string          // further arguments of `kube-bootstrap worker`
}

// mostUploads is the number of files that leave this machine at the same time.
const mostUploads = 5

// Partly is the error that some machines were not set up, and all others were.
type Partly struct{ Failed []error }

func (p *Partly) Error() string { return errors.Join(p.Failed...).Error() }

// Unwrap returns the errors, each of which names its machine.
func (p *Partly) Unwrap() []error { return p.Failed }

// run is one Up.
type run struct {
	options  Options
	session  *session.Session
	provider *Provider
	facts    map[string]Facts
	request  request
	leader   Machine
	exists   bool // the cluster exists
	uploads  chan struct{}
	failed   failures
}

// Up makes the machines the nodes of one cluster, or completes it. It changes nothing if any machine
// has a problem. A machine that does not answer, or fails, stops no other: then the error is Partly.
func Up(ctx context.Context, o Options, emit func(session.HostEvent)) error {
	s, err := session.Open(o.Selection, emit)
	if err != nil {
		return err
	}
	defer s.Close()
	r, release, err := begin(ctx, o, s)
	if err != nil {
		return err
	}
	defer release()
	if err := r.up(ctx); err != nil {
		return err
	}
	return errors.Join(r.keepHash(ctx), kubeconfig.Update(ctx, s), r.failed.err())
}

// begin keeps other runs out, and returns the problems of all machines.
func begin(ctx context.Context, o Options, s *session.Session) (*run, func(), error) {
	p, err := Of(s)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := s.Hold(ctx, session.ClusterLock)
	if err != nil {
		return nil, nil, err
	}
	facts, err := p.Facts(ctx)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	r := &run{options: o, session: s, provider: p, facts: facts, uploads: make(chan struct{}, mostUploads)}
	release, err := r.check(ctx)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return r, func() { release(); unlock() }, nil
}

func (r *run) check(ctx context.Context) (release func(), err error) {
	var size int64
	if info, err := os.Stat(r.options.Bundle); r.options.Bundle != "" && err == nil {
		size = info.Size()
	}
	r.request = request{
		machines: r.provider.choice.Machines, facts: r.facts, caHash: r.knownHash(), bundle: size,
		docker:  r.options.Docker,
		program: func(arch string) error { _, err := r.options.Program(ctx, r.options.Bundle, arch); return err },
	}
	if err := r.request.problems(); err != nil {
		return nil, err
	}
	r.leader, r.exists = r.request.leader()
	return r.provider.lockAll(ctx, r.answering())
}

// answering returns the names of the machines that answer.
func (r *run) answering() (names []string) {
	for _, m := range r.request.machines {
		if r.facts[m.Spec.Name].Err == nil {
			names = append(names, m.Spec.Name)
		}
	}
	return names
}

// hashFile is the file of this machine with the hash of the cluster's authority.
const hashFile = "ca-hash"

func (r *run) knownHash() string {
	text, err := os.ReadFile(filepath.Join(r.session.PrivateDir(), hashFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// keepHash keeps the hash of the cluster, so that no later run begins a second one.
func (r *run) keepHash(ctx context.Context) error {
	f := r.facts[r.leader.Spec.Name]
	if !r.exists {
		f = r.provider.ask(ctx, r.leader.Spec.Name)
	}
	if f.CAHash == "" || f.CAHash == r.request.caHash {
		return f.Err
	}
	_, err := r.session.WritePrivate(hashFile, []byte(f.CAHash+"\n"))
	return err
}

// up sets up all machines: first what all need, then the roles in order.
func (r *run) up(ctx context.Context) error {
	chosen := r.chosen()
	if err := r.prepare(ctx, chosen); err != nil {
		return err
	}
	join, err := r.joining(ctx)
	if err != nil {
		return err
	}
	leader := join.First
	if r.options.Only == "" || !r.exists {
		if err := r.apply(ctx, leader.Name, r.leaderPlan(join)); err != nil {
			r.failed.add(err)
			if !r.exists {
				return r.failed.err()
			}
		}
	}
	fresh := r.further(ctx, join, chosen)
	r.workers(ctx, join, chosen)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fresh {
		r.failed.add(r.session.Run(ctx, step.Plan{{join.Adapt()}}))
	}
	return nil
}

// chosen returns the machines that this run sets up, without those that do not answer, which it notes.
func (r *run) chosen() (all []Machine) {
	for _, m := range r.request.machines {
		wanted := r.options.Only == "" || r.options.Only == m.Spec.Name || m.Spec.Name == r.leader.Spec.Name && !r.exists
		switch f := r.facts[m.Spec.Name]; {
		case !wanted:
		case f.Err != nil:
			r.failed.add(f.Err)
		default:
			all = append(all, m)
		}
	}
	return all
}

// joining returns what lets nodes join. Nodes that are set up already count as existing.
func (r *run) joining(ctx context.Context) (*joining.Joining, error) {
	state, err := r.session.Observe(ctx)
	if err != nil {
		return nil, err
	}
	request := topology.Request{}
	for _, m := range r.request.machines {
		spec := m.Spec
		spec.Args = append(slices.Clone(spec.Args), "--host-name="+spec.Name, "--ip-address="+r.facts[spec.Name].Addr.String())
		request.Nodes = append(request.Nodes, spec)
	}
	nodes := request.Topology(r.session.Name, state)
	return &joining.Joining{
		Session: r.session, Nodes: nodes, State: topology.Observed(state.Running()), First: nodes.Node(r.leader.Spec.Name),
		MasterArgs: r.options.MasterArgs, WorkerArgs: r.options.WorkerArgs,
	}, nil
}

// apply runs the plan of one machine. Its error names the machine.
func (r *run) apply(ctx context.Context, name string, plan step.Plan) error {
	err := r.session.Run(ctx, plan)
	if err != nil && !strings.Contains(err.Error(), name+": ") {
		err = fmt.Errorf("machine %s: %w", name, err)
	}
	return err
}

// leaderPlan returns the plan of the first control plane, which is the source of the images for all others.
func (r *run) leaderPlan(join *joining.Joining) step.Plan {
	leader, args := join.First, []string{"master"}
	var files []step.Step
	if !r.exists {
		for _, f := range r.options.Files {
			files = append(files, remote.Put(r.session, step.IDOf("put", f.To), "put "+filepath.Base(f.From)+" on "+leader.Name, leader.Name, f))
		}
	}
	if r.options.Bundle != "" {
		files = append(files, upload{r.options.Bundle, bundleFile, 0o644}.step(r.provider, leader.Name, r.uploads))
		args = append(args, "--bundle", programDir+"/"+bundleFile)
	}
	if join.Nodes.OnlyControlPlanes() {
		args = append(args, "--no-dedicated")
	}
	args = slices.Concat(args, r.options.MasterArgs, leader.Spec.Args)
	return step.Plan{files, {joining.RoleStep(leader, func(ctx context.Context, n topology.ClusterNode) error {
		return remote.Run(ctx, r.session, n.Name, args, nil)
	})}}
}
