package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Preflight names every problem that would stop Up, and changes nothing.
func Preflight(ctx context.Context, options Options) error {
	f, err := open(options, nil)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	if err := f.resume(ctx); err != nil {
		return f.noAnswer(err)
	}
	return f.look(ctx)
}

// look names every problem that would stop the fleet, before anything is made.
func (f *fleet) look(ctx context.Context) error {
	info, err := f.docker.Facts(ctx)
	if err != nil {
		return f.noAnswer(err)
	}
	clash, err := f.clashes(ctx)
	if err != nil {
		return err
	}
	overlap, err := f.overlaps(ctx)
	if err != nil {
		return err
	}
	differs, err := f.differs(ctx)
	if err != nil {
		return err
	}
	room, err := f.room(ctx, engineMachine{info.Name, info.DockerRootDir, info.NCPU, info.MemTotal})
	if err != nil {
		return err
	}
	return errors.Join(slices.Concat(overlap, clash, differs, engineFit(info.ServerVersion), room)...)
}

func (f *fleet) noAnswer(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ") // an error of ssh has several lines
	return &step.Problem{
		Name: "engine", Text: fmt.Sprintf("the Docker engine on %s does not answer: %s", f.docker.Address, text),
		Remedy: engineRemedy(f.docker.Address, text), Firm: true,
	}
}

// engineRemedy returns a remedy for the kind of the engine's address and for
// the error of the connection.
func engineRemedy(address, text string) string {
	way, _, _ := strings.Cut(address, "://")
	switch {
	case strings.Contains(text, "permission denied") && way == "unix":
		return "run it with sudo, or add your user to the group of that socket (`usermod -aG docker USER`, then log in again)"
	case way == "ssh":
		return "check that `ssh " + strings.TrimPrefix(address, "ssh://") + " docker version` works without a password"
	case way == "tcp" || way == "http" || way == "https":
		return "check that Docker listens there, that no firewall is in between, and DOCKER_TLS_VERIFY and DOCKER_CERT_PATH"
	}
	return "start Docker there (`systemctl start docker`), or name another engine with --docker-host or --docker-context"
}

// engineFit looks for what a host needs of the engine: cgroup namespaces.
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

func (f *fleet) clashes(ctx context.Context) ([]error, error) {
	machines, err := f.docker.Machines(ctx)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, m := range f.members() {
		wanted[m.name] = true
	}
	var errs []error
	for _, m := range machines {
		if wanted[m.Name] && m.Fleet != f.Name {
			errs = append(errs, f.clash("container "+m.Name))
		}
	}
	networks, err := f.docker.Networks(ctx)
	for _, n := range networks {
		if n.Name == f.Name && n.Fleet != f.Name {
			errs = append(errs, f.clash("network "+n.Name))
		}
	}
	return errs, err
}

func (f *fleet) clash(what string) error {
	return &step.Problem{
		Name: "cluster-name-taken", Text: what + " is there already and is not of cluster " + f.Name,
		Remedy: "use another --name, or remove it",
	}
}

// overlaps compares the subnet with the engine's networks and the routes of its
// machine, if that is ours, but for the network that is the fleet's own.
func (f *fleet) overlaps(ctx context.Context) ([]error, error) {
	networks, err := f.docker.Networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		if n.Name != f.Name || n.Fleet != f.Name {
			continue
		}
		switch {
		case len(n.Subnets) == 0 || n.Subnets[0] == f.Subnet:
			return nil, nil // the overlapping route is the cluster's own
		case f.Recreate:
			others := slices.DeleteFunc(networks, func(one docker.Network) bool { return one.Name == f.Name })
			return f.overlapping(others, n.Subnets[0])
		}
		return []error{Differs(f.Name, []config.Difference{{
			Given: f.Subnet.String(), InForce: n.Subnets[0].String(), From: config.Origin{Source: config.FromFlag, Where: "--dind-subnet"},
		}})}, nil
	}
	return f.overlapping(networks, netip.Prefix{})
}

// overlapping compares the subnet with all networks and routes, except with the
// subnet gone, which is about to be removed.
func (f *fleet) overlapping(networks []docker.Network, gone netip.Prefix) ([]error, error) {
	var errs []error
	taken := map[string]bool{gone.String(): true}
	for _, n := range networks {
		for _, s := range n.Subnets {
			if s.Overlaps(f.Subnet) {
				taken[s.String()] = true
				errs = append(errs, f.overlap(s.String(), "Docker network "+n.Name))
			}
		}
	}
	if f.docker.Remote() {
		return errs, nil // our routes say nothing about its machine's
	}
	routes, err := host.Routes()
	for _, r := range routes {
		if r.Dst.Bits() > 0 && r.Dst.Overlaps(f.Subnet) && !taken[r.Dst.String()] {
			errs = append(errs, f.overlap(r.Dst.String(), "the route over "+r.Link))
		}
	}
	return errs, err
}

func (f *fleet) overlap(subnet, owner string) error {
	return &step.Problem{
		Name: "cluster-subnet-overlap", Text: fmt.Sprintf("--dind-subnet %s overlaps with %s of %s", f.Subnet, subnet, owner),
		Remedy: "use another --dind-subnet",
	}
}

// found returns the fleet's hosts that are there.
func (f *fleet) found(ctx context.Context) ([]docker.FoundMachine, error) {
	all, err := f.docker.Machines(ctx)
	var ours []docker.FoundMachine
	for _, m := range all {
		if m.Fleet == f.Name {
			ours = append(ours, m)
		}
	}
	return ours, err
}

func names(found []docker.FoundMachine) []string {
	var all []string
	for _, m := range found {
		all = append(all, m.Name)
	}
	return all
}
