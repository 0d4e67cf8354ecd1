package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// What a node needs before any pod of a user: its init, two Dockers and the
// components, and the images it loads.
const (
	masterMemory = 900 << 20
	workerMemory = 400 << 20
	nodeDisk     = 2 << 30
)

// engineMachine is what an engine says of the machine it runs on.
type engineMachine struct {
	name, root string
	cpus       int
	memory     int64
}

// room names what the machine of the engine lacks for the nodes that are still
// to be made.
func (f *fleet) room(ctx context.Context, on engineMachine) ([]error, error) {
	found, err := f.found(ctx)
	if err != nil {
		return nil, err
	}
	missing := f.missing(found)
	if len(missing) == 0 {
		return nil, nil
	}
	errs := f.tooMuch(missing, on)
	errs = append(errs, f.memory(missing, on), f.disk(missing, on), f.portTaken(ctx))
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil }), nil
}

// tooMuch compares what single nodes shall have with what there is.
func (f *fleet) tooMuch(missing []member, on engineMachine) []error {
	var errs []error
	for _, m := range missing {
		if m.spec.NanoCPUs > int64(on.cpus)*1e9 {
			errs = append(errs, &step.Problem{Name: "cluster-cpus",
				Text:   fmt.Sprintf("node %s requests %.1f processors, but the machine of the Docker engine has %d", m.name, float64(m.spec.NanoCPUs)/1e9, on.cpus),
				Remedy: "give it fewer cpus"})
		}
		if m.spec.Memory > 0 && m.role == Master && m.spec.Memory < masterMemory {
			errs = append(errs, &step.Problem{Name: "cluster-memory",
				Text:   fmt.Sprintf("node %s is limited to %d MiB of memory, but a control plane needs %d", m.name, m.spec.Memory>>20, masterMemory>>20),
				Remedy: "give it more memory"})
		}
	}
	return errs
}

// memory is asked for what is free, where the engine's machine is this one.
func (f *fleet) memory(missing []member, on engineMachine) error {
	var need int64
	for _, m := range missing {
		own := int64(workerMemory)
		if m.role == Master {
			own = masterMemory
		}
		need += max(own, m.spec.Memory)
	}
	have := on.memory
	if free, err := host.MemoryAvailable(); err == nil && on.here() {
		have = min(have, free)
	}
	if need <= have {
		return nil
	}
	return &step.Problem{Name: "cluster-memory",
		Text:   fmt.Sprintf("%d nodes need %d MiB of memory, the engine's machine has %d free", len(missing), need>>20, have>>20),
		Remedy: "make fewer nodes, or give them less memory"}
}

// disk looks where the engine keeps its data, if that is here. Elsewhere it can
// only be asked for once the engine has an image: see lookAtGround.
func (f *fleet) disk(missing []member, on engineMachine) error {
	if f.docker.Remote() || !on.here() {
		return nil
	}
	free, err := host.Files{}.FreeBytes(on.root)
	if err != nil {
		return err
	}
	return spaceProblem(free, missing)
}

// missing are the hosts that are to be made.
func (f *fleet) missing(found []docker.FoundMachine) []member {
	return slices.DeleteFunc(slices.Clone(f.members()), func(m member) bool {
		return slices.ContainsFunc(found, func(is docker.FoundMachine) bool { return is.Name == m.name })
	})
}

func spaceProblem(free int64, missing []member) error {
	var need int64
	for _, m := range missing {
		need += max(nodeDisk, m.spec.Disk)
	}
	if need <= free {
		return nil
	}
	return &step.Problem{Name: "disk-space",
		Text:   fmt.Sprintf("the machine of the engine has %d MiB free, %d hosts need %d MiB", free>>20, len(missing), need>>20),
		Remedy: "free some space there (`docker system prune`), make fewer hosts, or give them less disk"}
}

// here reports whether the engine's machine is this one, as far as its own
// words tell: one in a virtual machine has another name.
func (on engineMachine) here() bool {
	name, err := host.HostName()
	return err == nil && name == strings.ToLower(on.name)
}

// portTaken checks that the requested API port is free, unless the front
// already has it.
func (f *fleet) portTaken(ctx context.Context) error {
	if !f.Publish {
		return nil
	}
	if _, there, err := f.docker.Attached(ctx, f.Name, f.frontName()); err != nil || there {
		return err
	}
	err := host.PortFree(f.APIPort)
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "cluster-port", Text: fmt.Sprintf("--api-server-port %d is taken on this machine: %v", f.APIPort, err),
		Remedy: "use another one, or leave it out"}
}
