package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Moves are the steps by which a node comes and goes in the eyes of the API
// server.
type Moves struct {
	Cordon, Drain, Forget, Uncordon func(api kube.Connect, node string) step.Step
}

// AddNode makes one more node and returns its name. What it had begun is
// removed when it fails, unless Retain is set.
func AddNode(ctx context.Context, options Options, spec Spec, moves Moves, emit func(Event)) (name string, err error) {
	err = onNodes(ctx, options, emit, func(f *fleet, found []host.FoundMachine) error {
		first, err := f.firstMaster(ctx, "")
		if err != nil {
			return err
		}
		joined, err := f.joined(ctx)
		if err != nil {
			return err
		}
		if host := f.byName(f.Name + "-" + spec.Name); host.name != "" && !f.whole(ctx, host, found) {
			joined = slices.DeleteFunc(joined, func(name string) bool { return name == host.name })
		}
		f.Nodes = []Spec{f.named(spec, joined)}
		f.all = f.settle(found)
		m := f.byName(f.hostName(f.Nodes[0]))
		name = m.name
		if err := f.canJoin(m, joined); err != nil {
			return err
		}
		join := &joining{fleet: f, master: f.byName(first.Name)}
		f.shipped = f.bundleIsThere(ctx, join.master)
		verb := join.worker
		if m.role == Master {
			verb = join.furtherMaster
		}
		rows := step.Plan{
			{f.hostImage(f.variant(m))}, {f.lookAtGround()}, {f.boot(m)}, {f.program(m)},
			{join.open()}, {f.verb(m, verb)}, {join.close()},
		}
		err = f.run(ctx, rows)
		if err == nil || f.Retain {
			return err
		}
		return errors.Join(err, f.takeBack(ctx, m, moves))
	})
	return name, err
}

// joined names the nodes that the API server knows. A host that is not among
// them was left by a run that was killed, and is finished by the next.
func (f *fleet) joined(ctx context.Context) ([]string, error) {
	client, err := f.api(ctx, member{}).Client()
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names, nil
}

// whole reports whether everything is in place on a node; one that is off has
// been whole once.
func (f *fleet) whole(ctx context.Context, m member, found []host.FoundMachine) bool {
	for _, is := range found {
		if is.Name == m.name && is.State == "running" {
			var report struct{ InPlace bool }
			return json.Unmarshal(f.hostStatus(ctx, is).Report, &report) == nil && report.InPlace
		}
	}
	return true
}

// named gives a node without a name the next one of its role.
func (f *fleet) named(s Spec, joined []string) Spec {
	for n := 1; s.Name == ""; n++ {
		name := fmt.Sprintf("%s-%d", s.Role, n)
		if !slices.Contains(joined, f.Name+"-"+name) {
			s.Name = name
		}
	}
	return s
}

func (f *fleet) canJoin(m member, joined []string) error {
	var errs []error
	if slices.Contains(joined, m.name) {
		errs = append(errs, &step.Problem{Name: "node-exists", Text: "there is a node " + m.name + " already",
			Remedy: "use another --name, or `kube-bootstrap node start " + m.name + "`"})
	}
	if !validName.MatchString(m.spec.Name) {
		errs = append(errs, &step.Problem{Name: "cluster-name", Text: fmt.Sprintf("name %q can not be the name of a host", m.spec.Name),
			Remedy: "use lower-case letters, digits and -, a letter first, at most 40"})
	}
	if !roomFor(f.Subnet, m.addr) {
		errs = append(errs, &step.Problem{Name: "cluster-subnet", Text: fmt.Sprintf("%s has no address left", f.Subnet), Remedy: "remove a node"})
	}
	return errors.Join(errs...)
}

// takeBack removes a node that did not come to be.
func (f *fleet) takeBack(ctx context.Context, m member, moves Moves) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bootLimit)
	defer cancel()
	return f.run(ctx, step.Plan{{f.turndown(m)}, {moves.Forget(f.api(ctx, m), m.name)}, {f.removeHost(m)}})
}

// RemoveNode takes a node out of its cluster and leaves nothing of it. With
// force its pods are not moved first, and it need not run.
func RemoveNode(ctx context.Context, options Options, name string, force bool, moves Moves, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []host.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		if f.lastMaster(m, found) {
			if !force {
				return f.lastProblem(m, "remove")
			}
			return f.run(ctx, step.Plan{{f.removeHost(m)}})
		}
		api := f.api(ctx, m)
		if force {
			return f.run(ctx, step.Plan{{f.turndown(m)}, {moves.Forget(api, m.name)}, {f.removeHost(m)}})
		}
		return f.run(ctx, step.Plan{
			{f.boot(m)}, {moves.Cordon(api, m.name)}, {moves.Drain(api, m.name)},
			{f.turndown(m)}, {moves.Forget(api, m.name)}, {f.removeHost(m)},
		})
	})
}

// StopNode moves a node's pods away and switches it off; with force it is
// switched off at once.
func StopNode(ctx context.Context, options Options, name string, force bool, moves Moves, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []host.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		if force || !running(found, m) {
			return f.run(ctx, step.Plan{{f.switchOff(m)}})
		}
		if f.lastMaster(m, found) {
			return f.lastProblem(m, "stop")
		}
		api := f.api(ctx, m)
		return f.run(ctx, step.Plan{{moves.Cordon(api, m.name)}, {moves.Drain(api, m.name)}, {f.switchOff(m)}})
	})
}

// StartNode switches a node on and waits until it takes pods again.
func StartNode(ctx context.Context, options Options, name string, moves Moves, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, _ []host.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		if err := f.run(ctx, step.Plan{{f.boot(m)}}); err != nil {
			return err
		}
		api, back := f.api(ctx, member{}), &memberAPI{fleet: f}
		return f.run(ctx, step.Plan{
			{todo("wait for "+m.name+" to be Ready", func(ctx context.Context) error { return back.awaitNode(ctx, m.name) })},
			{moves.Uncordon(api, m.name)},
		})
	})
}

// onNodes does something to nodes of a fleet that is there, one run at a time.
func onNodes(ctx context.Context, options Options, emit func(Event), do func(*fleet, []host.FoundMachine) error) error {
	f, err := open(options, emit)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	found, err := f.found(ctx)
	if err != nil {
		return f.noAnswer(err)
	}
	if len(found) == 0 {
		return &step.Problem{Name: "cluster-missing", Text: "there is no cluster " + f.Name, Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "`"}
	}
	release, err := f.lock()
	if err != nil {
		return err
	}
	defer release()
	f.adopt(found)
	if err := errors.Join(f.sameSubnet(ctx), f.findPrograms(ctx)); err != nil {
		return err
	}
	return do(f, found)
}

// adopt takes the nodes as they are, whatever the options say.
func (f *fleet) adopt(found []host.FoundMachine) {
	f.Nodes, f.Hosts = nil, nil
	for _, m := range found {
		f.Nodes = append(f.Nodes, specOf(m))
	}
	f.all = f.settle(found)
}

// sameSubnet takes over the network that the cluster is on.
func (f *fleet) sameSubnet(ctx context.Context) error {
	networks, err := f.docker.Networks(ctx)
	for _, n := range networks {
		if n.Name == f.Name && n.Fleet == f.Name && len(n.Subnets) > 0 {
			f.Subnet = n.Subnets[0]
		}
	}
	return err
}

func (f *fleet) byName(name string) member {
	for _, m := range f.members() {
		if m.name == name {
			return m
		}
	}
	return member{}
}

// pick finds a node by its own name, or by that which the cluster gave it.
func (f *fleet) pick(name string) (member, error) {
	if m := f.byName(name); m.name != "" {
		return m, nil
	}
	if m := f.byName(f.Name + "-" + name); m.name != "" {
		return m, nil
	}
	var all []string
	for _, m := range f.members() {
		all = append(all, m.name)
	}
	return member{}, &step.Problem{Name: "node-missing", Text: fmt.Sprintf("cluster %s has no node %s", f.Name, name),
		Remedy: "use one of " + strings.Join(all, ", ")}
}

func running(found []host.FoundMachine, m member) bool {
	return slices.ContainsFunc(found, func(is host.FoundMachine) bool { return is.Name == m.name && is.State == "running" })
}

// lastMaster reports whether no control plane would run without m.
func (f *fleet) lastMaster(m member, found []host.FoundMachine) bool {
	return m.role == Master && !slices.ContainsFunc(f.members(), func(other member) bool {
		return other.role == Master && other.name != m.name && running(found, other)
	})
}

func (f *fleet) lastProblem(m member, verb string) error {
	return &step.Problem{Name: "last-control-plane", Text: m.name + " is the last control plane that runs: without it there is no cluster",
		Remedy: "use `kube-bootstrap cluster down`, or " + verb + " it with --force"}
}

// api reaches the API server by the first control plane that runs, but for one
// that is about to go.
func (f *fleet) api(ctx context.Context, leaves member) kube.Connect {
	return func() (*rest.Config, error) {
		data, err := f.kubeconfig(ctx, leaves.name)
		if err != nil {
			return nil, err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err == nil {
			config.QPS = -1 // a few requests, once
		}
		return config, err
	}
}

func (f *fleet) turndown(m member) step.Step {
	return step.Step{
		Name:  "turn " + m.name + " down",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if err != nil || !running(found, m) {
				return nil, err
			}
			return step.Diff{"run kube-bootstrap turndown on " + m.name}, nil
		},
		Apply: func(ctx context.Context) error {
			return f.relay(ctx, m, []string{"turndown", "--progress", "json", "--keep-images"}, nil)
		},
	}
}

func (f *fleet) removeHost(m member) step.Step {
	return step.Step{
		Name: "remove host " + m.name,
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if slices.ContainsFunc(found, func(is host.FoundMachine) bool { return is.Name == m.name }) {
				return step.Diff{"remove host " + m.name + " and its volumes"}, err
			}
			return nil, err
		},
		Apply: func(ctx context.Context) error {
			return f.docker.RemoveMachine(ctx, m.name, []string{f.machine(m).Volumes["/var/lib"]})
		},
	}
}

func (f *fleet) switchOff(m member) step.Step {
	return step.Step{
		Name: "switch " + m.name + " off",
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if err != nil || !running(found, m) {
				return nil, err
			}
			return step.Diff{"switch " + m.name + " off"}, nil
		},
		Apply: func(ctx context.Context) error { return f.docker.SwitchOff(ctx, m.name) },
	}
}

// bundleIsThere reports whether the hosts share a bundle already.
func (f *fleet) bundleIsThere(ctx context.Context, on member) bool {
	return f.node(on).Exec(ctx, driver.Exec{Args: []string{"test", "-e", bundleDir + "/" + bundleName}}) == nil
}

// lock keeps a second run on the same cluster away.
func (f *fleet) lock() (func(), error) {
	if err := os.MkdirAll(f.CacheDir, 0o755); err != nil {
		return nil, err
	}
	release, err := host.Lock(filepath.Join(f.CacheDir, ".cluster-"+f.Name+".lock"))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", f.Name, err)
	}
	return release, nil
}
