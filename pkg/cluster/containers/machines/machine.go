package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Machines are the machines of a cluster.
type Machines struct {
	engine  *docker.Engine
	volumes Volumes
}

// Definition describes a machine, a container that behaves as one: its first process is an
// init, it may do what the root of a machine may, and it comes back with the
// engine under the same address.
type Definition struct {
	Name       string // also its hostname
	Cluster    string
	Image      string
	Command    []string
	StopSignal string
	Network    string
	Addr       netip.Addr
	Aliases    []string          `json:",omitempty"` // network aliases, which several machines may share
	Volumes    map[string]string // path: name of the volume
	Mounts     []docker.Mount
	Ports      []docker.PortMapping `json:",omitempty"`
	NanoCPUs   int64                // CPU limit; 0: none
	Memory     int64                // limit in bytes; 0: none
	Weight     int64                // CPU shares, which matter only while the CPUs are busy; 0: Docker's default, 1024
	Labels     map[string]string    // additional labels of the container
	EngineHost EngineHost           `json:"-"` // limits what the machine gets
	// image to create the container from, if it is a snapshot of the root file system; empty: Image
	RootFS string `json:"-"`
}

// Missing lists the changes that Start would make. A foreign container is an error.
func (c Machines) Missing(ctx context.Context, m Definition) ([]string, error) {
	now, err := c.engine.ContainerInspect(ctx, m.Name, client.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return []string{"make host " + m.Name + " (" + m.Addr.String() + ") from " + m.Image}, nil
	case err != nil:
		return nil, err
	case now.Container.Config.Labels[docker.ClusterLabel] != m.Cluster:
		return nil, fmt.Errorf("container %s does not belong to cluster %s; rename or remove it", m.Name, m.Cluster)
	case !now.Container.State.Running, now.Container.State.Paused:
		return []string{"start host " + m.Name + ": it is " + string(now.Container.State.Status)}, nil
	}
	return nil, nil
}

// Start makes the machine if it is missing and switches it on.
func (c Machines) Start(ctx context.Context, m Definition) error {
	return docker.WhileTaken(ctx, func() error { return c.start(ctx, m) })
}

func (c Machines) start(ctx context.Context, m Definition) error {
	_, err := c.engine.ContainerInspect(ctx, m.Name, client.ContainerInspectOptions{})
	if err == nil {
		return c.SwitchOn(ctx, m.Name)
	}
	if !errdefs.IsNotFound(err) {
		return err
	}
	for _, volume := range m.Volumes {
		if err := c.volumes.Make(ctx, volume, nil); err != nil {
			return err
		}
	}
	// Request all capabilities first. If the engine's own machine lacks some, request
	// the others.
	whole := len(m.EngineHost.Caps) == len(capabilities)
	err = c.createAndStart(ctx, m, whole)
	if err != nil && whole && strings.Contains(err.Error(), "caps") {
		err = c.createAndStart(ctx, m, false)
	}
	return err
}

func (c Machines) createAndStart(ctx context.Context, m Definition, privileged bool) error {
	options := m.createOptions()
	options.HostConfig.Privileged = privileged
	if !privileged {
		options.HostConfig.CapAdd = m.EngineHost.Caps
		options.HostConfig.DeviceCgroupRules = []string{"a *:* rwm"}
	}
	id, err := c.engine.Create(ctx, options)
	if err != nil {
		return fmt.Errorf("make host %s: %w", m.Name, err)
	}
	if _, err := c.engine.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return errors.Join(fmt.Errorf("start host %s: %w", m.Name, err), c.engine.Discard(ctx, id))
	}
	return nil
}

// stopTimeout is in seconds. The Docker in a machine gives each of its containers ten.
var stopTimeout = 30

func (m Definition) createOptions() client.ContainerCreateOptions {
	exposed, bindings := docker.PortBindings(m.Ports)
	return client.ContainerCreateOptions{
		Name: m.Name,
		Config: &container.Config{
			Hostname: m.Name, Image: cmp.Or(m.RootFS, m.Image), Entrypoint: m.Command, StopSignal: m.StopSignal,
			StopTimeout: &stopTimeout,
			Env:         []string{"container=docker"}, ExposedPorts: exposed,
			Labels: m.labels(),
		},
		HostConfig: &container.HostConfig{
			NetworkMode: container.NetworkMode(m.Network), PortBindings: bindings, CgroupnsMode: "private",
			// Privileged implies these three settings, except on engines that
			// cannot give every capability.
			SecurityOpt:   []string{"seccomp=unconfined", "apparmor=unconfined"},
			MaskedPaths:   []string{},
			ReadonlyPaths: []string{},
			Tmpfs:         map[string]string{"/run": "exec", "/tmp": "exec"},
			Mounts:        m.mounts(),
			Resources: container.Resources{
				NanoCPUs: m.NanoCPUs, Memory: m.Memory, MemorySwap: m.Memory, CPUShares: m.Weight,
			},
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyUnlessStopped},
			LogConfig: container.LogConfig{
				Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "2"},
			},
		},
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			m.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: m.Addr}, Aliases: m.Aliases},
		}},
	}
}

func (m Definition) labels() map[string]string {
	definition, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers, bools and addresses only
	}
	all := map[string]string{}
	maps.Copy(all, m.Labels)
	maps.Copy(all, clusterLabels(m.Cluster))
	all[machineLabel] = string(definition)
	return all
}

func (m Definition) mounts() []mount.Mount {
	mounts := m.Mounts
	if m.EngineHost.Modules {
		mounts = append(slices.Clone(mounts), docker.Mount{
			Source: "/lib/modules", Target: "/lib/modules", ReadOnly: true,
		})
	}
	all := docker.Mounts(mounts)
	for target, volume := range m.Volumes {
		all = append(all, mount.Mount{Type: mount.TypeVolume, Source: volume, Target: target})
	}
	return all
}

// capabilities are the names that every engine since 20.10 accepts, in the order of
// their bits. Later capabilities are parts of CAP_SYS_ADMIN.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
	LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO
	SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE
	AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ`)

// machineLabel holds what a machine was made from, so that it can be made again.
const machineLabel = "kube-bootstrap.dev/machine"

// Inspected is a machine of the engine: its definition and its present state.
type Inspected struct {
	Definition
	ImageID string    // of the image that it was made from
	Running bool      // also when it is paused
	Started time.Time // by the engine's clock, which is the machine's
	Bytes   int64     // size of the container's writable layer; only if Inspect was called with size
}

// Inspect returns a machine that exists.
func (c Machines) Inspect(ctx context.Context, name string, size bool) (Inspected, error) {
	now, err := c.engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{Size: size})
	if err != nil {
		return Inspected{}, err
	}
	found := now.Container
	kept := Inspected{ImageID: found.Image, Running: found.State.Running}
	if found.SizeRw != nil {
		kept.Bytes = *found.SizeRw
	}
	if kept.Started, err = time.Parse(time.RFC3339Nano, found.State.StartedAt); err != nil {
		return kept, fmt.Errorf("when %s was started: %w", name, err)
	}
	err = json.Unmarshal([]byte(found.Config.Labels[machineLabel]), &kept.Definition)
	return kept, step.Wrap(err, "what %s was made from is not known", name)
}

// Commit makes an image of a machine's root file system, without its volumes.
func (c Machines) Commit(ctx context.Context, name, ref string) error {
	_, err := c.engine.ContainerCommit(ctx, name, client.ContainerCommitOptions{Reference: ref, NoPause: true})
	return step.Wrap(err, "keep the root file system of %s", name)
}

// Remove removes a machine and the volumes that no other uses. Missing ones are no error.
func (c Machines) Remove(ctx context.Context, name string, volumes []string) error {
	if err := c.engine.RemoveContainer(ctx, name); err != nil {
		return step.Wrap(err, "remove %s", name)
	}
	return host.Each(volumes, func(volume string) error { return c.volumes.Remove(ctx, volume) })
}

// File returns size and time of a file of a machine, running or not, or os.ErrNotExist.
func (c Machines) File(ctx context.Context, name, path string) (int64, time.Time, error) {
	found, err := c.engine.ContainerStatPath(ctx, name, client.ContainerStatPathOptions{Path: path})
	if errdefs.IsNotFound(err) {
		err = os.ErrNotExist
	}
	return found.Stat.Size, found.Stat.Mtime, err
}
