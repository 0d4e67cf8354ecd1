package testhost

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Machine creates, starts, stops and removes one host. A host that is no
// container would have no Machine: only access, as a driver.Node.
type Machine struct {
	session *session.Session
	config  docker.Machine
	node    driver.Node
}

const (
	// controlPlaneName is the network alias of all control planes.
	controlPlaneName = "control-plane"
	// masterWeight gives control planes most of the processors while all hosts
	// boot, because workers wait for them, and keeps a busy worker from starving
	// them.
	masterWeight = 8 * 1024
	// dataPath is the mount point of the volume that only one host has.
	dataPath = "/var/lib"
)

// NewMachine returns the machine of a node.
func NewMachine(s *session.Session, t topology.Topology, n topology.Node) Machine {
	name := t.Variant(n)
	v := variants[name]
	made := docker.Machine{
		Name: n.Name, Cluster: s.Name, Image: v.reference(name), Command: []string{entryPath}, StopSignal: v.StopSignal,
		Network: s.Name, Addr: n.Addr, Volumes: map[string]string{dataPath: n.Name + "-var-lib"},
		NanoCPUs: n.Spec.NanoCPUs, Memory: n.Spec.Memory, Labels: n.Spec.Labels(),
	}
	made.Ports = publishedPorts(n.Spec)
	if n.Role == topology.Master {
		made.Weight, made.Aliases = masterWeight, []string{controlPlaneName}
	}
	if s.Engine.Remote() {
		made.Volumes[SharedDir] = sharedVolume(s.Name)
	} else {
		made.Mounts = []docker.Mount{{Source: s.SharedDir(), Target: SharedDir, ReadOnly: true}}
	}
	made.Mounts = append(made.Mounts, mounts(n.Spec)...)
	return Machine{session: s, config: made, node: s.Node(n.Name)}
}

// publishedPorts returns the ports of a node, which are valid in a Spec.
func publishedPorts(s topology.Spec) (all []docker.PublishedPort) {
	for _, text := range s.Ports {
		if p, err := config.ParsePort(text); err == nil {
			all = append(all, docker.PublishedPort{HostIP: p.Address, HostPort: p.Port, Port: p.NodePort, Protocol: p.Protocol})
		}
	}
	return all
}

func mounts(s topology.Spec) (all []docker.Mount) {
	for _, text := range s.Mounts {
		if m, err := config.ParseMount(text); err == nil {
			all = append(all, docker.Mount{Source: m.Path, Target: m.NodePath, ReadOnly: m.ReadOnly})
		}
	}
	return all
}

// Boot returns the step that creates the machine if it is missing, starts it,
// and waits until its Docker answers. The step reads the facts when it runs.
func (m Machine) Boot(facts *docker.EngineHost) step.Step {
	return step.Step{
		Name: "boot " + m.config.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			diff, err := m.session.Machines().Missing(ctx, m.config)
			if err == nil && len(diff) == 0 && m.boots(ctx) {
				diff = step.Diff{"wait until " + m.config.Name + " has booted"}
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			config := m.config
			config.EngineHost = *facts
			return m.bootUp(ctx, config)
		},
	}
}

// Stop returns the step that shuts the machine down.
func (m Machine) Stop() step.Step {
	name := "switch " + m.config.Name + " off"
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			state, err := m.session.Observe(ctx)
			if err != nil || !state.Runs(m.config.Name) {
				return nil, err
			}
			return step.Diff{name}, nil
		},
		Apply: func(ctx context.Context) error { return m.session.Machines().SwitchOff(ctx, m.config.Name) },
	}
}

// Remove returns the step that removes the machine with its volume and its
// entry in the record.
func (m Machine) Remove() step.Step {
	return step.Step{
		Name: "remove host " + m.config.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			state, err := m.session.Observe(ctx)
			if err != nil || !state.Has(m.config.Name) {
				return nil, err
			}
			return step.Diff{"remove host " + m.config.Name + " and its volumes"}, nil
		},
		Apply: func(ctx context.Context) error {
			if err := m.session.DropNode(ctx, m.config.Name); err != nil { // first: if it is killed, `cluster up` does not create the node again
				return err
			}
			return m.session.Machines().Remove(ctx, m.config.Name, []string{m.config.Volumes[dataPath]})
		},
	}
}

// RemoveOldVolume returns the step that removes the volume of a former node of
// this name. A removal that was killed leaves the volume without its host, and
// the new node must not have the state of the old one.
func (m Machine) RemoveOldVolume() step.Step {
	volume := m.config.Volumes[dataPath]
	return step.Step{
		Name: "remove what a former " + m.config.Name + " left",
		Check: func(ctx context.Context) (step.Diff, error) {
			state, err := m.session.Observe(ctx)
			if err != nil || state.Has(m.config.Name) {
				return nil, err
			}
			volumes, err := m.session.Cluster().Volumes(ctx)
			if err != nil || !slices.ContainsFunc(volumes, func(v docker.Volume) bool { return v.Name == volume }) {
				return nil, err
			}
			return step.Diff{"remove volume " + volume}, nil
		},
		Apply: func(ctx context.Context) error { return m.session.Cluster().RemoveVolume(ctx, volume) },
	}
}

// Network returns the step that creates the network of a cluster.
func Network(s *session.Session, subnet netip.Prefix) step.Step {
	name := "make network " + s.Name
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			networks, err := s.Engine.Networks(ctx)
			if slices.ContainsFunc(networks, func(n docker.Network) bool { return n.Name == s.Name }) {
				return nil, err
			}
			return step.Diff{name + " with " + subnet.String()}, err
		},
		Apply: func(ctx context.Context) error {
			return s.Cluster().MakeNetwork(ctx, s.Name, subnet)
		},
	}
}

// EngineFacts returns the step that reads the facts of the engine's machine
// before the first host is created there, and checks its free disk space.
func EngineFacts(s *session.Session, t topology.Topology, facts *docker.EngineHost, check func(free int64, missing []topology.Node) error) step.Step {
	return step.Step{
		Name:  "inspect the host of the engine",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			state, err := s.Observe(ctx)
			missing := t.Missing(state)
			if len(missing) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("look whether there is room for %d hosts", len(missing))}, err
		},
		Apply: func(ctx context.Context) error {
			found, err := s.Cluster().EngineHost(ctx, Image(t))
			if err != nil {
				return err
			}
			*facts = found
			state, err := s.Observe(ctx)
			if err != nil {
				return err
			}
			return check(found.FreeBytes, t.Missing(state))
		},
	}
}
