package testhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// BootPlan returns the plan that creates and starts all hosts of a topology at
// once, after their images, network and shared files.
func BootPlan(s *session.Session, t topology.Topology, shared, front []step.Step, check func(free int64, missing []topology.Node) error) step.Plan {
	facts := new(docker.EngineHost)
	var boot, images []step.Step
	var names []string
	for _, n := range t.Nodes() {
		boot = append(boot, NewMachine(s, t, n).Boot(facts))
		if name := t.Variant(n); !slices.Contains(names, name) {
			names = append(names, name)
			images = append(images, ImageStep(s, name))
		}
	}
	return step.Plan{
		images,
		append([]step.Step{Network(s, t.Subnet()), EngineFacts(s, t, facts, check)}, shared...),
		append(boot, front...),
	}.Compact()
}

// StartPlan returns the plan that starts existing hosts with the containers beside
// them, and waits until each node has reported Ready since, and until the DNS
// serves. It runs no command on the hosts, because they start their services
// themselves.
func StartPlan(s *session.Session, hosts []string, front, registry []step.Step) step.Plan {
	start := step.Always(fmt.Sprintf("switch %d hosts on", len(hosts)), func(ctx context.Context) error { return s.Machines().SwitchOn(ctx, hosts...) })
	return step.Plan{append(front, start), registry, apiserver.NewWaiter(s).Steps(hosts)}.Compact()
}

// Existing returns the machines of a cluster in the order of their names.
func Existing(ctx context.Context, s *session.Session) ([]docker.KeptMachine, error) {
	state, err := s.Observe(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []docker.KeptMachine
	err = docker.Together(state.Names(), func(name string) error {
		m, err := s.Machines().Kept(ctx, name, true)
		if errdefs.IsNotFound(err) {
			return nil // the engine has just finished a removal that a killed run began
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m)
		return err
	})
	slices.SortFunc(all, func(a, b docker.KeptMachine) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// OwnVolumes returns the volumes that only this host has.
func OwnVolumes(m docker.Machine) []string {
	var own []string
	for _, volume := range m.Volumes {
		if volume != sharedVolume(m.Cluster) {
			own = append(own, volume)
		}
	}
	return own
}

// RemoveAll removes all hosts with their volumes, the containers beside them, and
// the network. Volumes for which keep returns true stay, and so do the images of
// the local registry.
func RemoveAll(ctx context.Context, s *session.Session, keep func(docker.Volume) bool) error {
	hosts, err := Existing(ctx, s)
	if err != nil {
		return err
	}
	err = docker.Together(hosts, func(h docker.KeptMachine) error { return s.Machines().Remove(ctx, h.Name, OwnVolumes(h.Machine)) })
	if err != nil {
		return err
	}
	for _, name := range BesideHosts(s.Name) {
		if err := s.Engine.Remove(ctx, name); err != nil {
			return err
		}
	}
	if err := removeVolumes(ctx, s, keep); err != nil {
		return err
	}
	return s.Cluster().RemoveNetwork(ctx, s.Name)
}

// BesideHosts returns the names of the containers of a cluster that are no hosts.
func BesideHosts(cluster string) []string {
	return []string{apiserver.FrontName(cluster), RegistryName(cluster)}
}

// removeVolumes removes volumes that a killed run left without their host.
func removeVolumes(ctx context.Context, s *session.Session, keep func(docker.Volume) bool) error {
	volumes, err := s.Cluster().Volumes(ctx)
	errs := []error{err}
	for _, v := range volumes {
		if !v.IsNote() && v.Name != sharedVolume(s.Name) && v.Name != RegistryName(s.Name) && !keep(v) {
			errs = append(errs, s.Cluster().RemoveVolume(ctx, v.Name))
		}
	}
	return errors.Join(errs...)
}
