package testhost

import (
	"context"
	_ "embed" // ready.sh and booted.sh
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Machine creates, starts, stops and removes one host. A host that is no
// container would have no Machine: only access, as an access.Node.
type Machine struct {
	cluster containers.Cluster
	config  machines.Definition
}

const (
	// controlPlaneName is the network alias of all control planes.
	controlPlaneName = "control-plane"
	// controlPlaneWeight gives control planes most of the processors while all hosts
	// boot, because workers wait for them, and keeps a busy worker from starving
	// them.
	controlPlaneWeight = 8 * 1024
	// dataPath is the mount point of the volume that only one host has.
	dataPath = "/var/lib"
)

// NewMachine returns the machine of a node.
func NewMachine(c containers.Cluster, t topology.Topology, n topology.ClusterNode) Machine {
	name := t.Variant(n)
	v := variants[name]
	made := machines.Definition{
		Name: n.Name, Cluster: c.Name, Image: v.reference(name), Command: []string{entryPath}, StopSignal: v.StopSignal,
		Network: c.Name, Addr: n.Addr, Volumes: map[string]string{dataPath: n.Name + "-var-lib"},
		NanoCPUs: n.Spec.NanoCPUs, Memory: n.Spec.Memory, Labels: containers.Labels(n.Spec),
	}
	made.Ports = publishedPorts(n.Spec)
	if n.Role == topology.ControlPlane {
		made.Weight, made.Aliases = controlPlaneWeight, []string{controlPlaneName}
	}
	if c.Engine.Remote() {
		made.Volumes[SharedDir] = sharedVolume(c.Name)
	} else {
		made.Mounts = []docker.Mount{{Source: c.Session.SharedDir(), Target: SharedDir, ReadOnly: true}}
	}
	made.Mounts = append(made.Mounts, mounts(n.Spec)...)
	return Machine{cluster: c, config: made}
}

func publishedPorts(s topology.Spec) (all []docker.PortMapping) {
	for _, p := range s.Ports {
		all = append(all, docker.PortMapping{
			HostIP: p.Address, HostPort: p.Port, Port: p.NodePort, Protocol: p.Protocol,
		})
	}
	return all
}

func mounts(s topology.Spec) (all []docker.Mount) {
	for _, m := range s.Mounts {
		all = append(all, docker.Mount{Source: m.Path, Target: m.NodePath, ReadOnly: m.ReadOnly})
	}
	return all
}

// Boot returns the step that creates the machine if it is missing, starts it,
// and waits until its Docker answers. The step reads the facts when it runs.
func (m Machine) Boot(facts *machines.EngineHost) step.Step {
	return step.Step{
		ID: BootID(m.config.Name), Name: "boot " + m.config.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			diff, err := m.cluster.Machines.Missing(ctx, m.config)
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

// bootUp starts a host and waits until it is ready. A host that a killed run was
// stopping goes off meanwhile, and is started again.
func (m Machine) bootUp(ctx context.Context, config machines.Definition) error {
	const tries = 3
	for try := 1; ; try++ {
		if err := m.cluster.Machines.Start(ctx, config); err != nil {
			return err
		}
		err := m.ready(ctx)
		if err == nil || try == tries || !goesOff(err) {
			return err
		}
		if off := m.awaitOff(ctx); off != nil {
			return errors.Join(err, off)
		}
	}
}

// notStarted is Docker's exit code of a command that it could not start, as in a container
// whose processes end. No script of this package ends with it.
const notStarted = 126

// goesOff reports whether a command ended by a signal or with its host, or was not
// started, as on a host that stops.
func goesOff(err error) bool {
	exit, ok := errors.AsType[*access.ExitError](err)
	return !ok || exit.Code == notStarted || exit.Code > 128
}

func (m Machine) awaitOff(ctx context.Context) error {
	return step.Until(ctx, func(ctx context.Context) error {
		now, err := m.cluster.Machines.Inspect(ctx, m.config.Name, false)
		if err == nil && now.Running {
			err = fmt.Errorf("%s is stopping", m.config.Name)
		}
		return err
	}, nil)
}

// readyScript waits on the host itself. Running one command per check would cost
// the engine more than the check.
//
//go:embed scripts/ready.sh
var readyScript string

func (m Machine) ready(ctx context.Context) error {
	limit := step.Limit(ctx)
	silent := fmt.Errorf("Docker on %s does not answer within %s", m.config.Name, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, silent) //nolint:forbidigo // step.Limit, with a cause
	defer cancel()
	step.Report(ctx, "wait for its Docker", 0, 0)
	err := access.Run(ctx, m.cluster.Session.Node(m.config.Name), access.Script(readyScript, "5000")...)
	if err == nil {
		return nil
	}
	reading, done := step.Checking(context.WithoutCancel(ctx))
	defer done()
	return fmt.Errorf("%w\n%s", err, strings.TrimSpace(m.cluster.Engine.Tail(reading, m.config.Name, 20)))
}

// bootedScript exits with 143, like a stopped process, on a host that is stopping.
//
//go:embed scripts/booted.sh
var bootedScript string

// boots reports whether a running host is booting or stopping, because a killed
// run started or stopped it. It returns false if Docker on the host is down for
// another reason.
func (m Machine) boots(ctx context.Context) bool {
	err := access.Run(ctx, m.cluster.Session.Node(m.config.Name), access.Script(bootedScript)...)
	if err == nil || goesOff(err) {
		return err != nil
	}
	now, err := m.cluster.Machines.Inspect(ctx, m.config.Name, false)
	return err == nil && time.Since(now.Started) < step.Limit(ctx)
}

// BootID returns the ID of the step that boots a machine.
func BootID(machine string) step.ID { return step.IDOf("boot", machine) }

// Stop returns the step that shuts the machine down.
func (m Machine) Stop() step.Step {
	name := "switch " + m.config.Name + " off"
	return step.When(step.IDOf("stop", m.config.Name), name, name, func(ctx context.Context) (bool, error) {
		state, err := m.cluster.Session.Observe(ctx)
		return state.Runs(m.config.Name), err
	}, func(ctx context.Context) error { return m.cluster.Machines.SwitchOff(ctx, m.config.Name) })
}

// Remove returns the step that removes the machine, its volume and its entry in the record.
func (m Machine) Remove() step.Step {
	name := "remove host " + m.config.Name
	return step.When(step.IDOf("remove", m.config.Name), name, name+" and its volumes",
		func(ctx context.Context) (bool, error) {
			state, err := m.cluster.Session.Observe(ctx)
			return state.Has(m.config.Name), err
		}, func(ctx context.Context) error {
			// first: if it is killed, `cluster up` does not create the node again
			if err := m.cluster.Session.DropNode(ctx, m.config.Name); err != nil {
				return err
			}
			return m.cluster.Machines.Remove(ctx, m.config.Name, []string{m.config.Volumes[dataPath]})
		})
}

// RemoveOldVolume returns the step that removes the volume of a former node of
// this name. A removal that was killed leaves the volume without its host, and
// the new node must not have the state of the old one.
func (m Machine) RemoveOldVolume() step.Step {
	volume := m.config.Volumes[dataPath]
	return step.When(step.IDOf("remove-old-volume", m.config.Name), "remove what a former "+m.config.Name+" left",
		"remove volume "+volume, func(ctx context.Context) (bool, error) {
			state, err := m.cluster.Session.Observe(ctx)
			if err != nil || state.Has(m.config.Name) {
				return false, err
			}
			volumes, err := m.cluster.Volumes.List(ctx)
			return slices.ContainsFunc(volumes, func(v machines.Volume) bool { return v.Name == volume }), err
		}, func(ctx context.Context) error {
			if err := m.cluster.RemoveHelpers(ctx); err != nil { // one may still copy to the volume
				return err
			}
			return m.cluster.Volumes.Remove(ctx, volume)
		})
}
