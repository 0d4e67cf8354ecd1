package testhost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Setup describes what the hosts of a cluster have in common.
type Setup struct {
	Cluster  containers.Cluster
	Topology topology.Topology // without control planes: bare hosts, without load balancer and registry
	Subnet   netip.Prefix      // of the cluster's network
	Files    []SharedFile
	Binary   string // kube-bootstrap
	APIPort  int
	Publish  bool // publish APIPort on the engine's machine
	Registry RegistrySettings
	Disk     PreparedDisk
	Facts    *machines.EngineHost // of the host of the engine, known once EngineFacts ran
}

// BootPlan returns the plan that creates and starts hosts of the topology at once,
// after the images of all hosts, their network and shared files. The steps of also run with the
// network.
func (u Setup) BootPlan(
	hosts []topology.ClusterNode, check func(free int64, missing []topology.ClusterNode) error, also ...step.Step,
) step.Plan {
	var boot, images []step.Step
	for _, n := range hosts {
		boot = append(boot, u.Boot(n))
	}
	var names []string
	for _, n := range u.Topology.Nodes() {
		if name := u.Topology.Variant(n); !slices.Contains(names, name) {
			names = append(names, name)
			images = append(images, ImageStep(u.Cluster, name))
		}
	}
	return step.Plan{
		images,
		append([]step.Step{Network(u.Cluster, u.Subnet), u.EngineFacts(check), u.Share()},
			also...),
		boot,
		{u.LocalRegistry()},
	}
}

// Boot returns the step that creates and starts the host of a node.
func (u Setup) Boot(n topology.ClusterNode) step.Step {
	return NewMachine(u.Cluster, u.Topology, n).Boot(u.Facts)
}

// StartPlan returns the plan that shares files with existing hosts and starts them. The engine
// starts no host whose shared directory is missing, as after the cache was removed.
func (u Setup) StartPlan(hosts []string) step.Plan {
	return append(step.Plan{{u.Share()}}, u.StartShared(hosts)...)
}

// StartShared returns the plan that starts existing hosts with their service
// containers, and waits until each node has reported Ready since, and until the DNS
// serves. It runs no command on the hosts, because they start their services
// themselves.
func (u Setup) StartShared(hosts []string) step.Plan {
	start := step.Always("start-hosts", fmt.Sprintf("switch %d hosts on", len(hosts)), func(ctx context.Context) error {
		return u.Cluster.Machines.SwitchOn(ctx, hosts...)
	})
	return step.Plan{{u.LoadBalancer(), start}, {u.LocalRegistry()}, NewWaiter(u.Cluster).Steps(hosts)}
}

// Network returns the step that creates the network of a cluster.
func Network(c containers.Cluster, subnet netip.Prefix) step.Step {
	name := "make network " + c.Name
	return step.When("network", name, name+" with "+subnet.String(), func(ctx context.Context) (bool, error) {
		networks, err := c.Engine.Networks(ctx)
		return !slices.ContainsFunc(networks, func(n docker.Network) bool { return n.Name == c.Name }), err
	}, func(ctx context.Context) error {
		err := c.MakeNetwork(ctx, c.Name, subnet)
		// the engine's answer to an overlap with a network that was made since preflight
		if errdefs.IsPermissionDenied(err) {
			return &step.Problem{
				Name: "cluster-subnet-overlap", Text: err.Error(),
				Remedy: "use another --dind-subnet, or none: then run the same command again, which takes a free " +
					"network",
			}
		}
		return err
	})
}

// EngineFacts returns the step that reads the facts of the engine's machine
// before the first host is created there, and checks its free disk space.
func (u Setup) EngineFacts(check func(free int64, missing []topology.ClusterNode) error) step.Step {
	c, t := u.Cluster, u.Topology
	return step.Step{
		ID: "engine-host", Name: "inspect the host of the engine",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			state, err := c.Session.Observe(ctx)
			missing := t.Missing(state)
			if len(missing) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("look whether there is room for %d hosts", len(missing))}, err
		},
		Apply: func(ctx context.Context) error {
			found, err := c.EngineHost(ctx, Image(t))
			if err != nil {
				return err
			}
			*u.Facts = found
			state, err := c.Session.Observe(ctx)
			if err != nil {
				return err
			}
			return check(found.FreeBytes, t.Missing(state))
		},
	}
}

// Existing returns the machines of a cluster in the order of their names.
func Existing(ctx context.Context, c containers.Cluster) ([]machines.Inspected, error) {
	state, err := c.Session.Observe(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []machines.Inspected
	err = host.Together(state.Names(), func(name string) error {
		m, err := c.Machines.Inspect(ctx, name, true)
		if errdefs.IsNotFound(err) {
			return nil // the engine has just finished a removal that a killed run began
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m)
		return err
	})
	slices.SortFunc(all, func(a, b machines.Inspected) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// UnsharedVolumes returns the volumes that only this host has.
func UnsharedVolumes(m machines.Definition) []string {
	shared := func(volume string) bool { return volume == sharedVolume(m.Cluster) }
	return slices.DeleteFunc(slices.Collect(maps.Values(m.Volumes)), shared)
}

// RemoveAll removes all hosts with their volumes, the service containers, and
// the network. Volumes for which keep returns true stay, and so do the images of
// the local registry.
func RemoveAll(ctx context.Context, c containers.Cluster, keep func(machines.Volume) bool) error {
	if err := c.RemoveHelpers(ctx); err != nil { // they may write to volumes
		return err
	}
	hosts, err := Existing(ctx, c)
	if err != nil {
		return err
	}
	err = host.Together(hosts, func(h machines.Inspected) error {
		return c.Machines.Remove(ctx, h.Name, UnsharedVolumes(h.Definition))
	})
	if err != nil {
		return err
	}
	for _, name := range ServiceContainers(c.Name) {
		if err := c.Engine.Remove(ctx, name); err != nil {
			return err
		}
	}
	if err := removeVolumes(ctx, c, keep); err != nil {
		return err
	}
	return c.RemoveNetwork(ctx, c.Name)
}

// ServiceContainers returns the names of the containers of a cluster that are no hosts.
func ServiceContainers(cluster string) []string {
	return []string{containers.LoadBalancerName(cluster), RegistryName(cluster)}
}

// removeVolumes removes volumes that a killed run left without their host.
func removeVolumes(ctx context.Context, c containers.Cluster, keep func(machines.Volume) bool) error {
	volumes, err := c.Volumes.List(ctx)
	left := slices.DeleteFunc(volumes, func(v machines.Volume) bool {
		return machines.IsNote(v) || v.Name == sharedVolume(c.Name) || v.Name == RegistryName(c.Name) || keep(v)
	})
	return errors.Join(err, host.Each(left, func(v machines.Volume) error { return c.Volumes.Remove(ctx, v.Name) }))
}
