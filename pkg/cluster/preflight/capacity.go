package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Memory and disk that a node needs before any pod of a user runs: for its init,
// two Dockers, the components, and the images that it loads.
const (
	masterMemory = 900 << 20
	workerMemory = 400 << 20
	nodeDisk     = 2 << 30
)

// engineMachine describes the machine that the engine runs on.
type engineMachine struct {
	name, root string
	cpus       int
	memory     int64
	remote     bool
}

// capacity returns the resources that the machine of the engine lacks for the
// missing nodes.
func (u Up) capacity(ctx context.Context, s *session.Session, state topology.State, on engineMachine) ([]error, error) {
	missing := u.Topology.Missing(state)
	if len(missing) == 0 {
		return nil, nil
	}
	errs := tooMuch(missing, on)
	errs = append(errs, memory(missing, on), disk(missing, on), u.portTaken(ctx, s))
	errs = append(errs, portsTwice(missing)...)
	if on.here() {
		errs = append(errs, mountsMissing(missing))
	}
	if on.here() && !u.Recreate { // the cluster that is removed first may have the ports
		errs = append(errs, portsTaken(missing))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil }), nil
}

// tooMuch compares the limits of single nodes with the machine.
func tooMuch(missing []topology.Node, on engineMachine) []error {
	var errs []error
	for _, m := range missing {
		if m.Spec.NanoCPUs > int64(on.cpus)*1e9 {
			errs = append(errs, &step.Problem{Name: "cluster-cpus",
				Text:   fmt.Sprintf("node %s requests %.1f processors, but the machine of the Docker engine has %d", m.Name, float64(m.Spec.NanoCPUs)/1e9, on.cpus),
				Remedy: "give it fewer cpus"})
		}
		if m.Spec.Memory > 0 && m.Role == topology.Master && m.Spec.Memory < masterMemory {
			errs = append(errs, &step.Problem{Name: "cluster-memory",
				Text:   fmt.Sprintf("node %s is limited to %d MiB of memory, but a control plane needs %d", m.Name, m.Spec.Memory>>20, masterMemory>>20),
				Remedy: "give it more memory"})
		}
	}
	return errs
}

// memory compares the nodes with the free memory if the engine runs on this
// machine, otherwise with all of its memory.
func memory(missing []topology.Node, on engineMachine) error {
	var need int64
	for _, m := range missing {
		own := int64(workerMemory)
		if m.Role == topology.Master {
			own = masterMemory
		}
		need += max(own, m.Spec.Memory)
	}
	have := on.memory
	if free, err := kernel.MemoryAvailable(); err == nil && on.here() {
		have = min(have, free)
	}
	if need <= have {
		return nil
	}
	return &step.Problem{Name: "cluster-memory",
		Text:   fmt.Sprintf("%d nodes need %d MiB of memory, the engine's machine has %d free", len(missing), need>>20, have>>20),
		Remedy: "make fewer nodes, or give them less memory"}
}

// disk checks the disk of the engine if it is on this machine. Otherwise
// testhost.EngineFacts checks it once the engine has an image.
func disk(missing []topology.Node, on engineMachine) error {
	if on.remote || !on.here() {
		return nil
	}
	free, err := filesystem.FreeBytes(host.Files{}, on.root)
	if err != nil {
		return err
	}
	return DiskSpace(free, missing)
}

// DiskSpace returns the problem that the missing nodes need more than the free
// bytes.
func DiskSpace(free int64, missing []topology.Node) error {
	var need int64
	for _, m := range missing {
		need += max(nodeDisk, m.Spec.Disk)
	}
	if need <= free {
		return nil
	}
	return &step.Problem{Name: "disk-space",
		Text:   fmt.Sprintf("the machine of the engine has %d MiB free, %d hosts need %d MiB", free>>20, len(missing), need>>20),
		Remedy: "free some space there (`docker system prune`), make fewer hosts, or give them less disk"}
}

// here reports whether the engine runs on this machine, by the name of the
// machine: a virtual machine has another name.
func (on engineMachine) here() bool {
	name, err := host.HostName()
	return err == nil && name == strings.ToLower(on.name)
}

// portTaken checks that the requested API port is free, unless the front
// already has it.
func (u Up) portTaken(ctx context.Context, s *session.Session) error {
	if !u.Publish {
		return nil
	}
	if _, there, err := s.Cluster().Attached(ctx, apiserver.FrontName(s.Name)); err != nil || there {
		return err
	}
	err := host.PortFree(u.APIPort)
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "cluster-port", Text: fmt.Sprintf("--api-server-port %d is taken on this machine: %v", u.APIPort, err),
		Remedy: "use another one, or leave it out"}
}
