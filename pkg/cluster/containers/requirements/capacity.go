package requirements

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Memory and disk that a node needs before any pod of a user runs.
const (
	controlPlaneMemory = 900 << 20
	workerMemory       = 400 << 20
	nodeDisk           = 2 << 30
)

type engineMachine struct {
	version string // of the engine
	root    string // directory of the engine's data
	cpus    int
	memory  int64
	here    bool // it is this machine, by its name: a virtual machine has another one
	remote  bool
}

func machineOf(ctx context.Context, c containers.Cluster) (engineMachine, error) {
	info, err := c.Engine.Facts(ctx)
	if err != nil {
		return engineMachine{}, c.Session.Provider.NoAnswer(err)
	}
	name, err := host.HostName()
	here := err == nil && name == strings.ToLower(info.Name)
	return engineMachine{info.ServerVersion, info.DockerRootDir, info.NCPU, info.MemTotal, here, c.Engine.Remote()}, nil
}

// capacity returns what the engine's machine lacks for the new nodes. Memory, disk and ports
// that existing hosts have are free again if the hosts are removed first.
func (c checks) capacity(ctx context.Context) ([]error, error) {
	missing := c.Topology.Missing(c.state)
	created := missing
	if c.recreate {
		created = c.Topology.Nodes()
	}
	if len(created) == 0 {
		return nil, nil
	}
	errs := append(tooMuch(created, c.engine), c.portTaken(ctx))
	errs = append(errs, portsTwice(created)...)
	if c.engine.here {
		errs = append(errs, mountsMissing(created))
	}
	if len(missing) > 0 {
		errs = append(errs, memory(missing, c.engine), disk(missing, c.engine))
	}
	if c.engine.here && !c.recreate {
		errs = append(errs, portsTaken(created))
	}
	return errs, nil
}

// tooMuch compares the limits of single nodes with the machine.
func tooMuch(missing []topology.ClusterNode, on engineMachine) []error {
	var errs []error
	for _, m := range missing {
		if m.Spec.NanoCPUs > int64(on.cpus)*1e9 {
			errs = append(errs, &step.Problem{Name: "cluster-cpus",
				Text: fmt.Sprintf("node %s requests %.1f processors, but the machine of the Docker engine has %d",
					m.Name, float64(m.Spec.NanoCPUs)/1e9, on.cpus),
				Remedy: "give it fewer cpus"})
		}
		if m.Spec.Memory > 0 && m.Role == topology.ControlPlane && m.Spec.Memory < controlPlaneMemory {
			errs = append(errs, &step.Problem{Name: "cluster-memory",
				Text: fmt.Sprintf("node %s is limited to %d MiB of memory, but a control plane needs %d",
					m.Name, m.Spec.Memory>>20, controlPlaneMemory>>20),
				Remedy: "give it more memory"})
		}
	}
	return errs
}

// memory compares the nodes with the memory of the machine, the free memory if it is this machine.
func memory(missing []topology.ClusterNode, on engineMachine) error {
	var need int64
	for _, m := range missing {
		own := int64(workerMemory)
		if m.Role == topology.ControlPlane {
			own = controlPlaneMemory
		}
		need += max(own, m.Spec.Memory)
	}
	have := on.memory
	if free, err := kernel.MemoryAvailable(); err == nil && on.here {
		have = min(have, free)
	}
	if need <= have {
		return nil
	}
	return &step.Problem{Name: "cluster-memory",
		Text: fmt.Sprintf("%d nodes need %d MiB of memory, the engine's machine has %d free", len(missing),
			need>>20, have>>20),
		Remedy: "make fewer nodes, or give them less memory"}
}

// disk checks the disk of the engine if it is on this machine. Otherwise
// testhost.EngineFacts checks it once the engine has an image.
func disk(missing []topology.ClusterNode, on engineMachine) error {
	if on.remote || !on.here {
		return nil
	}
	free, err := filesystem.FreeBytes(host.Files{}, on.root)
	if err != nil {
		return err
	}
	return DiskSpace(free, missing)
}

// DiskSpace returns the problem that the missing nodes need more than the free bytes.
func DiskSpace(free int64, missing []topology.ClusterNode) error {
	var need int64
	for _, m := range missing {
		need += max(nodeDisk, m.Spec.Disk)
	}
	if need <= free {
		return nil
	}
	return &step.Problem{Name: "disk-space",
		Text: fmt.Sprintf("the machine of the engine has %d MiB free, %d hosts need %d MiB",
			free>>20, len(missing), need>>20),
		Remedy: "free some space there (`docker system prune`), make fewer hosts, or give them less disk"}
}
