package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// AddNode makes one more node and returns its name. What it had begun is
// removed when it fails, unless Retain is set.
func AddNode(ctx context.Context, options Options, spec Spec, moves Moves, emit func(Event)) (name string, err error) {
	err = onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		m, err := f.newcomer(ctx, spec, found)
		if err != nil {
			return err
		}
		name = m.name
		join, err := f.joiningNow(ctx)
		if err != nil {
			return err
		}
		err = f.run(ctx, f.admission(m, join))
		if err != nil {
			join.revoke(ctx)
		}
		if err == nil || f.Retain {
			return err
		}
		return errors.Join(err, f.takeBack(ctx, m, moves))
	})
	return name, err
}

// newcomer is the node that is to join. One that a run left half-way is
// finished, though its cluster may know it.
func (f *fleet) newcomer(ctx context.Context, spec Spec, found []docker.FoundMachine) (member, error) {
	joined, err := f.joined(ctx)
	if err != nil {
		return member{}, err
	}
	if begun := f.byName(f.Name + "-" + spec.Name); begun.name != "" && !f.whole(ctx, begun, found) {
		joined = slices.DeleteFunc(joined, func(name string) bool { return name == begun.name })
	}
	f.Nodes = []Spec{f.named(spec, joined)}
	f.all = f.settle(found)
	m := f.byName(f.hostName(f.Nodes[0]))
	return m, f.canJoin(m, joined)
}

// joiningNow returns the join data of a running cluster.
func (f *fleet) joiningNow(ctx context.Context) (*joining, error) {
	first, err := f.firstMaster(ctx, "")
	if err != nil {
		return nil, err
	}
	join := &joining{fleet: f, master: f.byName(first.Name)}
	f.shipped = f.bundleIsThere(ctx, join.master)
	return join, nil
}

// admission returns the plan by which one node joins.
func (f *fleet) admission(m member, join *joining) step.Plan {
	rows := step.Plan{{f.hostImage(f.variant(m)), f.dropLeft(m)}, {f.lookAtGround()}, {f.boot(m)}, {f.program(m)}}
	if m.role != Master {
		return append(rows, []step.Step{f.verb(m, join.worker)})
	}
	return append(rows, []step.Step{join.open()}, []step.Step{f.verb(m, join.furtherMaster)}, []step.Step{join.close()})
}

// dropLeft returns the step that removes the volume of a former node of this
// name. A removal that was killed leaves the volume without its host, and the
// new node must not have the state of the old one.
func (f *fleet) dropLeft(m member) step.Step {
	volume := f.machine(m).Volumes["/var/lib"]
	return step.Step{
		Name: "remove what a former " + m.name + " left",
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			if err != nil || slices.Contains(names(found), m.name) {
				return nil, err
			}
			volumes, err := f.docker.Volumes(ctx, f.Name)
			if err != nil || !slices.ContainsFunc(volumes, func(v docker.Volume) bool { return v.Name == volume }) {
				return nil, err
			}
			return step.Diff{"remove volume " + volume}, nil
		},
		Apply: func(ctx context.Context) error { return f.docker.RemoveVolume(ctx, volume) },
	}
}

// joined names the nodes that the API server knows. A host that is not among
// them was left by a run that was killed, and is finished by the next.
func (f *fleet) joined(ctx context.Context) ([]string, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
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
func (f *fleet) whole(ctx context.Context, m member, found []docker.FoundMachine) bool {
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
			Remedy: "use another --name, or `kube-bootstrap node start " + m.name + " --cluster " + f.Name + "`"})
	}
	if !validName.MatchString(m.spec.Name) {
		errs = append(errs, &step.Problem{Name: "cluster-name", Text: fmt.Sprintf("name %q can not be the name of a host", m.spec.Name),
			Remedy: "use lower-case letters, digits and -, a letter first, at most 40"})
	}
	if m.role == Master && controlPlanes(f.members()) > maxMasters {
		errs = append(errs, &step.Problem{Name: "cluster-size", Text: fmt.Sprintf("cluster %s has %d control planes", f.Name, maxMasters), Remedy: "add workers"})
	}
	if !roomFor(f.Subnet, m.addr) {
		errs = append(errs, &step.Problem{Name: "cluster-subnet", Text: fmt.Sprintf("%s has no address left", f.Subnet), Remedy: "remove a node"})
	}
	return errors.Join(errs...)
}

// takeBack removes a node that did not come to be.
func (f *fleet) takeBack(ctx context.Context, m member, moves Moves) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return f.run(ctx, step.Plan{{f.turndown(m)}, {moves.Forget(f.api(ctx, m), m.name)}, {f.removeHost(m)}})
}

// bundleIsThere reports whether the hosts share a bundle already.
func (f *fleet) bundleIsThere(ctx context.Context, on member) bool {
	return f.node(on).Exec(ctx, driver.Exec{Args: []string{"test", "-e", bundleDir + "/" + bundleName}}) == nil
}
