// Package preflight checks a cluster before a command changes it. The checks
// change nothing. They are functions of the desired and the observed nodes.
package preflight

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Up describes the cluster that `cluster up` is about to create or to change.
type Up struct {
	Topology topology.Topology
	APIPort  int
	Publish  bool   // publish APIPort on the engine's machine
	Recreate bool   // all hosts are removed first
	Program  string // path of the kube-bootstrap of the containers

	RegistryPort int // of the local registry on the engine's machine; 0: none
}

// Check returns all problems that would stop `cluster up`.
func (u Up) Check(ctx context.Context, s *session.Session) error {
	info, err := s.Engine.Facts(ctx)
	if err != nil {
		return s.NoAnswer(err)
	}
	state, err := s.Observe(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, check := range []func() ([]error, error){
		func() ([]error, error) { return u.overlaps(ctx, s) },
		func() ([]error, error) { return u.clashes(ctx, s) },
		func() ([]error, error) { return u.differs(ctx, s, state) },
		func() ([]error, error) { return engineFit(info.ServerVersion), nil },
		func() ([]error, error) { return programFit(u.Program) },
		func() ([]error, error) { return u.registryPort(ctx, s, engineMachine{name: info.Name}.here()) },
		func() ([]error, error) {
			return u.capacity(ctx, s, state, engineMachine{info.Name, info.DockerRootDir, info.NCPU, info.MemTotal, s.Engine.Remote()})
		},
	} {
		found, err := check()
		if err != nil {
			return err
		}
		errs = append(errs, found...)
	}
	return errors.Join(errs...)
}

// engineFit returns the problem that the engine has no cgroup namespaces, which
// the hosts need.
func engineFit(version string) []error {
	if olderThan(version, 20, 10) {
		return []error{&step.Problem{
			Name: "engine-version", Text: "the Docker engine is " + version + ", test hosts need 20.10", Remedy: "update Docker",
		}}
	}
	return nil
}

func olderThan(version string, major, minor int) bool {
	words := strings.SplitN(version, ".", 3)
	if len(words) < 2 {
		return false // a build from source calls itself anything
	}
	haveMajor, errMajor := strconv.Atoi(words[0])
	haveMinor, errMinor := strconv.Atoi(words[1])
	if errMajor != nil || errMinor != nil {
		return false
	}
	return haveMajor < major || haveMajor == major && haveMinor < minor
}

// clashes returns the containers and networks of others that have the names of
// this cluster.
func (u Up) clashes(ctx context.Context, s *session.Session) (errs []error, err error) {
	machines, err := s.Engine.Machines(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range machines {
		if (u.Topology.Has(m.Name) || slices.Contains(testhost.BesideHosts(s.Name), m.Name)) && m.Cluster != s.Name {
			errs = append(errs, clash(s.Name, "container "+m.Name))
		}
	}
	networks, err := s.Engine.Networks(ctx)
	for _, n := range networks {
		if n.Name == s.Name && n.Cluster != s.Name {
			errs = append(errs, clash(s.Name, "network "+n.Name))
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
