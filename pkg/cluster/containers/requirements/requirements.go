// Package requirements checks, before a command changes a cluster of containers, whether its engine
// can run the requested hosts. The checks change nothing.
package requirements

import (
	"context"
	"debug/elf"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// checks are the checks of one run.
type checks struct {
	testhost.Setup
	recreate bool // all hosts are removed first
	state    topology.State
	engine   engineMachine
}

// Check returns all problems that would stop `cluster up` with this setup, which
// removes all hosts first if recreate is set.
func Check(ctx context.Context, setup testhost.Setup, recreate bool) error {
	engine, err := machineOf(ctx, setup.Cluster)
	if err != nil {
		return err
	}
	state, err := setup.Cluster.Session.Observe(ctx)
	if err != nil {
		return err
	}
	c := checks{setup, recreate, state, engine}
	var errs []error
	for _, check := range []func(context.Context) ([]error, error){
		c.overlaps, c.clashes, c.differs,
		func(context.Context) ([]error, error) { return engineFit(engine.version), nil },
		func(context.Context) ([]error, error) { return programFit(c.Binary) },
		c.registryPort, c.capacity,
	} {
		found, err := check(ctx)
		if err != nil {
			return err
		}
		errs = append(errs, found...)
	}
	return errors.Join(errs...)
}

// engineFit returns the problem that the engine has no cgroup namespaces, which
// the hosts need. An engine that was built from source may have any version.
func engineFit(engine string) []error {
	if v, err := version.ParseGeneric(engine); err != nil || v.AtLeast(version.MajorMinor(20, 10)) {
		return nil
	}
	return []error{&step.Problem{
		Name: "engine-version", Text: "the Docker engine is " + engine + ", test hosts need 20.10",
		Remedy: "update Docker",
	}}
}

// programFit returns the problem that a program is not for Linux, or needs the C library of the machine.
// It also runs in the container at the address of the cluster, which contains
// nothing else. `go install` links it so where a C compiler is installed.
func programFit(path string) ([]error, error) {
	program, err := elf.Open(path)
	if _, ok := errors.AsType[*elf.FormatError](err); ok {
		return []error{&step.Problem{
			Name:   "program-system",
			Text:   "this program is not for Linux, which the containers of a cluster run",
			Remedy: "run the command on Linux, or make a cluster of machines",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer program.Close()
	if !slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, nil
	}
	return []error{&step.Problem{
		Name:   "program-dynamic",
		Text:   "this program was built to need the C library, which the containers of a cluster need not have",
		Remedy: "build it with CGO_ENABLED=0, as `make build` does",
	}}, nil
}

// clashes returns the containers and networks of others that have the names of this cluster.
func (c checks) clashes(ctx context.Context) (errs []error, err error) {
	found, err := machines.All(ctx, c.Cluster.Engine)
	if err != nil {
		return nil, err
	}
	for _, m := range found {
		if (c.Topology.Has(m.Name) || slices.Contains(testhost.ServiceContainers(c.Cluster.Name), m.Name)) &&
			m.Cluster != c.Cluster.Name {
			errs = append(errs, clash(c.Cluster.Name, "container "+m.Name))
		}
	}
	networks, err := c.Cluster.Engine.Networks(ctx)
	for _, n := range networks {
		if n.Name == c.Cluster.Name && n.Cluster != c.Cluster.Name {
			errs = append(errs, clash(c.Cluster.Name, "network "+n.Name))
		}
	}
	return errs, err
}

func clash(cluster, what string) error {
	return &step.Problem{
		Name: "cluster-name-taken", Text: what + " already exists and does not belong to cluster " + cluster,
		Remedy: "use another --name, or remove it",
	}
}
