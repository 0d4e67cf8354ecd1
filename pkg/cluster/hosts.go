package cluster

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Event is a step's event, of the fleet itself or of one of its hosts.
type Event struct {
	Host string // "" when it is the fleet's own
	step.Event
}

// Host is a host that runs.
type Host struct {
	Name string
	Role Role
	Addr netip.Addr
	driver.Node
}

// fleet is what one call works with.
type fleet struct {
	Options
	docker   *docker.Engine
	ground   docker.Ground // what the engine's machine has, once lookAtGround has run
	all      []member
	there    map[string]bool // hosts that the engine had before
	shipped  bool            // the hosts have a bundle already
	programs string          // the note of those built from a checkout; "": none are
	emit     func(Event)
}

// bundleDir is where the hosts find what they share with us, read-only.
const bundleDir = "/opt/kube-bootstrap"

// Hosts makes the hosts of a fleet and waits until each runs its init and its
// Docker. It runs no kube-bootstrap on them.
func Hosts(ctx context.Context, options Options, emit func(Event)) ([]Host, error) {
	f, err := open(options, emit)
	if err != nil {
		return nil, err
	}
	defer f.docker.Close()
	if err := f.do(ctx, f.hostRows()); err != nil {
		return nil, err
	}
	// The nodes outlive this call, so they get an engine of their own.
	engine, err := f.engine()
	if err != nil {
		return nil, err
	}
	var hosts []Host
	for _, m := range f.members() {
		hosts = append(hosts, Host{Name: m.name, Role: m.role, Addr: m.addr, Node: driver.OpenDocker(engine, m.name)})
	}
	return hosts, nil
}

func open(options Options, emit func(Event)) (*fleet, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	docker, err := options.engine()
	if err != nil {
		return nil, err
	}
	if emit == nil {
		emit = func(Event) {}
	}
	return &fleet{Options: options, docker: docker, all: options.members(), emit: oneByOne(emit)}, nil
}

// do walks the rows. What a run that failed had begun is removed again, unless
// something of that name was there before or the user wants to see it.
func (f *fleet) do(ctx context.Context, rows step.Plan) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	before, err := f.found(ctx)
	if err != nil {
		return err
	}
	runner := &step.Runner{Emit: func(e step.Event) { f.emit(Event{Event: e}) }}
	err = runner.Do(ctx, rows)
	if err == nil || f.Retain || len(before) > 0 {
		return err
	}
	cleanup, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return errors.Join(err, f.removeBegun(cleanup))
}

// hostRows make the hosts: what they need first, then all of them at once.
func (f *fleet) hostRows() step.Plan {
	return f.bootRows(f.members())
}

func (f *fleet) bootRows(all []member) step.Plan {
	var boot, images []step.Step
	var names []string
	for _, m := range all {
		boot = append(boot, f.boot(m))
		if name := f.variant(m); !slices.Contains(names, name) {
			names = append(names, name)
			images = append(images, f.hostImage(name))
		}
	}
	return step.Plan{
		images,
		{f.network(), f.shared(), f.notePrograms(), f.lookAtGround()},
		append(boot, f.front()...),
	}.Compact()
}

func (f *fleet) network() step.Step {
	return step.Step{
		Name: "make network " + f.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			networks, err := f.docker.Networks(ctx)
			for _, n := range networks {
				if n.Name == f.Name {
					return nil, err
				}
			}
			return step.Diff{"make network " + f.Name + " with " + f.Subnet.String()}, err
		},
		Apply: func(ctx context.Context) error {
			return f.docker.MakeNetwork(ctx, docker.Network{Name: f.Name, Fleet: f.Name, Subnets: []netip.Prefix{f.Subnet}})
		},
	}
}

// boot is the step that makes a host run, until its Docker answers.
func (f *fleet) boot(m member) step.Step {
	machine := f.machine(m)
	return step.Step{
		Name: "boot " + m.name,
		Check: func(ctx context.Context) (step.Diff, error) {
			diff, err := f.docker.MachineMissing(ctx, machine)
			if err == nil && len(diff) == 0 && f.boots(ctx, m.name) {
				diff = step.Diff{"wait until " + m.name + " has booted"}
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			machine.Ground = f.ground
			return f.bootUp(ctx, m, machine)
		},
	}
}

// masterWeight has control planes go first when all hosts boot at the same
// time, since workers wait for them, and keeps a busy worker from starving them.
const masterWeight = 8 * 1024

func (f *fleet) machine(m member) docker.Machine {
	variant := f.variant(m)
	machine := docker.Machine{
		Name: m.name, Fleet: f.Name, Image: variants[variant].reference(variant), Command: []string{entryPath}, StopSignal: variants[variant].StopSignal,
		Network: f.Name, Addr: m.addr, Volumes: map[string]string{"/var/lib": m.name + "-var-lib"},
		NanoCPUs: m.spec.NanoCPUs, Memory: m.spec.Memory, Labels: m.spec.label(),
	}
	if m.role == Master {
		machine.Weight, machine.Aliases = masterWeight, []string{controlPlaneName}
	}
	if f.docker.Remote() {
		machine.Volumes[bundleDir] = f.sharedVolume()
	} else {
		machine.Mounts = []docker.Mount{{Source: f.sharedDir(), Target: bundleDir, ReadOnly: true}}
	}
	return machine
}

// variant is what a host is made of.
func (f *fleet) variant(m member) string { return cmp.Or(m.spec.HostImage, f.HostImage) }

// image is one that the engine has once the hosts are made.
func (f *fleet) image() string {
	variant := f.variant(f.members()[0])
	return variants[variant].reference(variant)
}
