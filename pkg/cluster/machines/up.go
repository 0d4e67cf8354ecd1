package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
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
	Concurrency int    // machines that are set up at the same time
	Only        string // set up only this node; "": all
	Bundle      string // the images, for the first control plane; "": it finds them itself
	// Program returns the path of kube-bootstrap for an architecture. The bundle may contain it.
	Program    func(ctx context.Context, bundle, arch string) (path string, err error)
	Docker     DockerSource      // of the machines that have none
	Files      []remote.FileCopy // that the first control plane gets, such as manifests
	MasterArgs []string          // further arguments of `kube-bootstrap master`
	WorkerArgs []string          // further arguments of `kube-bootstrap worker`
	Kubeconfig string            // file of this machine that gets the administrator's kubeconfig; "": none
	Prune      bool              // remove the nodes of the cluster that the file does not have
}

// Result is the cluster after Up.
type Result struct {
	Nodes   []apiserver.NodeStatus // as the API server reports them
	Absent  []string               // nodes that the file does not have
	Context string                 // the context of the kubeconfig; "" if no file got it
}

// Partly is the error of a run that has set up some of the machines, and not all.
type Partly struct{ Failed []error }

func (p *Partly) Error() string { return errors.Join(p.Failed...).Error() }

// Unwrap returns the errors, each of which names its machine.
func (p *Partly) Unwrap() []error { return p.Failed }

// run is the state of one call of Up.
type run struct {
	options  Options
	session  *session.Session
	provider *Provider
	facts    map[string]Facts
	request  request
	first    Machine // the control plane that the others join
	exists   bool    // the cluster exists
	join     *joining.Joining
	files    *transfers
	sent     sync.Map        // names of the new machines to which this run has sent files
	same     map[string]bool // machines on which their role would change nothing
	failed   failures
}

// Up makes the machines the nodes of one cluster, or completes it. It changes nothing if any machine
// has a problem. A machine that does not answer, or fails, stops no other: then the error is Partly.
func Up(ctx context.Context, o Options, emit func(session.HostEvent)) (Result, error) {
	s, err := session.Open(o.Selection, emit)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	r, release, err := begin(ctx, o, s)
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := r.up(ctx); err != nil {
		return Result{}, err
	}
	result, err := r.result(ctx)
	return result, errors.Join(err, r.failed.err())
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
	release, err := p.lockAll(ctx)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	end := func() { release(); unlock() }
	r, err := newRun(ctx, o, s, p)
	if err != nil {
		end()
		return nil, nil, err
	}
	return r, end, nil
}

// newRun returns the problems of all machines, and changes nothing.
func newRun(ctx context.Context, o Options, s *session.Session, p *Provider) (*run, error) {
	facts, err := p.Facts(ctx)
	if err != nil {
		return nil, err
	}
	var size int64
	if info, err := os.Stat(o.Bundle); o.Bundle != "" && err == nil {
		size = info.Size()
	}
	r := &run{options: o, session: s, provider: p, facts: facts, files: newTransfers(o, p, facts)}
	r.request = request{
		machines: p.choice.Machines, facts: facts, caHash: r.knownHash(), bundle: size, docker: o.Docker,
		program: func(arch string) error { _, err := o.Program(ctx, o.Bundle, arch); return err },
	}
	if err := r.request.problems(); err != nil {
		return nil, err
	}
	r.first, r.exists = r.request.first()
	r.join, err = r.joining(ctx)
	return r, err
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
	f := r.facts[r.first.Spec.Name]
	if !f.Complete {
		f = r.provider.askAgain(ctx, r.first.Spec.Name)
	}
	if f.CAHash == "" || f.CAHash == r.request.caHash {
		return f.Err
	}
	_, err := r.session.WritePrivate(hashFile, []byte(f.CAHash+"\n"))
	return err
}

// up sets up all machines: first what all need, then the roles in order.
func (r *run) up(ctx context.Context) error {
	ready, err := r.prepare(ctx, r.chosen())
	if err != nil {
		return err
	}
	r.compare(ctx, ready)
	if err := r.setUpFirst(ctx, ready); err != nil {
		return err
	}
	joined := r.furtherControlPlanes(ctx, ready)
	r.workers(ctx, ready)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if joined {
		r.failed.add(r.session.Run(ctx, step.Plan{{r.join.Adapt()}}))
	}
	return nil
}

// result reads the administrator's kubeconfig once for all that needs it.
func (r *run) result(ctx context.Context) (result Result, err error) {
	if err := r.keepHash(ctx); err != nil {
		return result, err
	}
	admin, err := apiserver.Read(ctx, r.session, "")
	if err != nil {
		return result, err
	}
	if r.options.Kubeconfig != "" {
		result.Context, err = kubeconfig.Add(ctx, r.session.Selection, admin, r.options.Kubeconfig)
	} else {
		err = kubeconfig.Update(ctx, r.session)
	}
	if err != nil {
		return result, err
	}
	api := apiserver.Through(r.session, admin)
	if result.Nodes, err = apiserver.List(ctx, api); err != nil {
		return result, err
	}
	r.failed.add(r.request.removedNodes(result.Nodes)...)
	if r.options.Only != "" {
		return result, nil
	}
	result.Absent, result.Nodes = r.prune(ctx, api, result.Nodes)
	return result, nil
}

// chosen returns the machines that this run sets up. It omits machines that do not answer, and records
// their errors.
func (r *run) chosen() (all []Machine) {
	for _, m := range r.request.machines {
		needed := m.Spec.Name == r.first.Spec.Name && !r.exists
		wanted := needed || r.options.Only == "" || r.options.Only == m.Spec.Name
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

// joining returns the Joining of this run. Its state contains the nodes that are set up already.
func (r *run) joining(ctx context.Context) (*joining.Joining, error) {
	state, err := r.session.Observe(ctx)
	if err != nil {
		return nil, err
	}
	request := topology.Request{}
	for _, m := range r.request.machines {
		spec, addr := m.Spec, r.facts[m.Spec.Name].Addr
		spec.Args = append(slices.Clone(spec.Args), "--host-name="+spec.Name, "--ip-address="+addr.String())
		request.Nodes = append(request.Nodes, spec)
	}
	nodes := request.Topology(r.session.Name, state)
	return &joining.Joining{
		Session: r.session, Nodes: nodes, State: topology.Observed(state.Running()),
		First:      nodes.Node(r.first.Spec.Name),
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
