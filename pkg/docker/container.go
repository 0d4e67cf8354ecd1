package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The labels of containers of kube-bootstrap.
const (
	OurLabel  = "kube-bootstrap.dev/owner" // value: the name of the component
	specLabel = "kube-bootstrap.dev/spec"  // value: hash of the Container
)

// ClusterLabel marks what belongs to a cluster. Its value is the name of the cluster.
const ClusterLabel = "kube-bootstrap.dev/cluster"

// Mount binds a path of the host, or a volume, into a container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
	Shared         bool // rshared: mounts made inside reach the host
	Volume         bool `json:",omitempty"` // Source is the name of a volume
}

// Container is the desired state of a container of kube-bootstrap.
type Container struct {
	Name       string
	Image      string // reference; it must be in the engine's store
	Command    []string
	Env        []string
	Mounts     []Mount
	Privileged bool
	Caps       []string // capabilities to keep; all others are dropped unless Privileged
	HostPID    bool
	Restart    string     // restart policy: "unless-stopped"
	On         Attachment `json:",omitzero"` // zero: the host's own network
	// StopFirst gives the program time to end before its container is replaced.
	StopFirst bool `json:"-"`
}

// Running lists the changes that Run would make: create or start the container,
// replace it if its definition differs, or restart it if it crashes repeatedly
// or if a directory that it has mounted was removed meanwhile.
func (d *Engine) Running(ctx context.Context, c Container) ([]string, error) {
	now, err := d.ContainerInspect(ctx, c.Name, client.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err), absent(err):
		return []string{"run container " + c.Name + " from " + c.Image}, nil
	case err != nil:
		return nil, noAnswer(err)
	case now.Container.Config.Labels[OurLabel] == "":
		return nil, foreign(c.Name, d.Address)
	case now.Container.Config.Labels[specLabel] != c.hash():
		return []string{"replace container " + c.Name + ": its settings differ"}, nil
	case now.Container.State.Restarting: // the engine also reports State.Running for it
		last, _ := endOf(now.Container)
		return []string{fmt.Sprintf("have container %s run: %s: %s", c.Name, last, lastLine(d.Tail(ctx, c.Name, 1)))},
			nil
	case !now.Container.State.Running:
		return []string{"start container " + c.Name + ": it is " + string(now.Container.State.Status)}, nil
	}
	return d.replacedDirs(c, now.Container.State.Pid)
}

// replacedDirs compares the directories that a container has mounted with those
// of the host. Only the processes of an engine on this host can be inspected.
func (d *Engine) replacedDirs(c Container, pid int) (diff []string, err error) {
	if d.Remote() || pid == 0 {
		return nil, nil
	}
	for _, m := range c.Mounts {
		if m.Volume {
			continue
		}
		replaced, err := process.DirReplaced(host.Files{}, pid, m.Source, m.Target)
		if err != nil {
			return nil, err
		}
		if replaced {
			diff = append(diff, "restart container "+c.Name+": "+m.Source+" was removed or replaced since it started")
		}
	}
	return diff, nil
}

// Run makes the container run as described and replaces one with another definition. A
// running container that matches is restarted only for the reasons of Running. A container that
// crashes is restarted at once: the engine would wait for up to a minute.
func (d *Engine) Run(ctx context.Context, c Container) error {
	now, err := d.ContainerInspect(ctx, c.Name, client.ContainerInspectOptions{})
	if err == nil && now.Container.Config.Labels[specLabel] == c.hash() {
		return portError(d.run(ctx, c, now.Container.State))
	}
	if err := d.replace(ctx, c); err != nil {
		return step.Wrap(err, "create container %s", c.Name)
	}
	return step.Wrap(portError(startContainer(ctx, d.Client, c.Name)), "start container %s", c.Name)
}

func (d *Engine) run(ctx context.Context, c Container, now *container.State) error {
	if !now.Running {
		return startContainer(ctx, d.Client, c.Name)
	}
	replaced, err := d.replacedDirs(c, now.Pid)
	if err != nil || len(replaced) == 0 && !now.Restarting {
		return err
	}
	_, err = d.ContainerRestart(ctx, c.Name, client.ContainerRestartOptions{})
	return err
}

// startContainer starts a container. It retries while the engine has no connection to containerd,
// as for a moment after a restart of containerd.
func startContainer(ctx context.Context, api *client.Client, name string) error {
	limited, cancel := step.Limited(ctx)
	defer cancel()
	for {
		_, err := api.ContainerStart(ctx, name, client.ContainerStartOptions{})
		if !noContainerd(err) || step.Pause(limited, retryPause) != nil {
			return err
		}
		step.Report(ctx, err.Error(), 0, 0)
	}
}

// noContainerd reports whether the engine had no connection to containerd. The engine
// answers with an internal error, so only the text identifies it: of Docker 28.5, and of 26.1.
func noContainerd(err error) bool {
	return errdefs.IsInternal(err) &&
		(strings.Contains(err.Error(), "Unavailable: ") || strings.HasSuffix(err.Error(), ": unavailable"))
}

func (d *Engine) replace(ctx context.Context, c Container) error {
	if c.StopFirst {
		if _, err := d.ContainerStop(ctx, c.Name, client.ContainerStopOptions{}); err != nil &&
			!errdefs.IsNotFound(err) {
			return err
		}
	}
	return WhileTaken(ctx, func() error {
		if err := d.Remove(ctx, c.Name); err != nil {
			return err
		}
		options := c.createOptions()
		c.On.apply(&options)
		_, err := d.Create(ctx, options)
		return err
	})
}

// Create creates a container and returns its ID. It cannot be interrupted: the engine completes
// a creation whose request ends, and the container would appear after the removal of what an
// interrupted run has created.
func (d *Engine) Create(ctx context.Context, options client.ContainerCreateOptions) (id string, err error) {
	whole, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	// The daemon's userns-remap, default-runtime and init are for the containers of the user.
	plain := false
	options.HostConfig.UsernsMode, options.HostConfig.Runtime, options.HostConfig.Init = "host", "runc", &plain
	made, err := d.ContainerCreate(whole, options)
	return made.ID, err
}

const retryPause = 100 * time.Millisecond

// WhileTaken retries a creation while the name is in use: an engine completes the creation of a killed run.
func WhileTaken(ctx context.Context, create func() error) error {
	const tries = 20
	for try := 1; ; try++ {
		err := create()
		if !errdefs.IsConflict(err) || try == tries {
			return err
		}
		if err := step.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

func (c Container) hash() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings, numbers, bools and addresses only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func (c Container) createOptions() client.ContainerCreateOptions {
	hc := &container.HostConfig{
		NetworkMode:   "host",
		Privileged:    c.Privileged,
		Mounts:        Mounts(c.Mounts),
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyMode(c.Restart)},
		LogConfig: container.LogConfig{
			Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "3"},
		},
		// An engine with userns-remap gives the files of images to another user. mount(8), which has the
		// setuid bit, would run as that user, and could not mount the volumes of pods.
		SecurityOpt: []string{"no-new-privileges"},
	}
	if c.Privileged {
		hc.CgroupnsMode = "host"
	} else {
		hc.CapDrop, hc.CapAdd = []string{"ALL"}, c.Caps
	}
	if c.HostPID {
		hc.PidMode = "host"
	}
	return client.ContainerCreateOptions{
		Name:       c.Name,
		HostConfig: hc,
		Config: &container.Config{
			Image: c.Image, Cmd: c.Command, Env: c.Env, Entrypoint: []string{},
			Labels: map[string]string{OurLabel: c.Name, specLabel: c.hash()},
		},
	}
}

// Mounts returns mounts as the engine takes them.
func Mounts(mounts []Mount) (all []mount.Mount) {
	for _, m := range mounts {
		one := mount.Mount{Type: mount.TypeVolume, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
		if !m.Volume {
			one.Type, one.BindOptions = mount.TypeBind, &mount.BindOptions{}
			if m.Shared {
				one.BindOptions.Propagation = mount.PropagationRShared
			}
		}
		all = append(all, one)
	}
	return all
}

// Remove stops and removes a container of kube-bootstrap. A missing container or engine
// is not an error; a container of somebody else is one.
func (d *Engine) Remove(ctx context.Context, name string) error {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if now.Container.Config.Labels[OurLabel] == "" {
		return foreign(name, d.Address)
	}
	return d.RemoveContainer(ctx, name)
}

func foreign(name, address string) error {
	return fmt.Errorf("container %s on %s does not belong to kube-bootstrap; rename or remove it", name, address)
}

// Tail returns the last lines of a container's log.
func (d *Engine) Tail(ctx context.Context, name string, lines int) string {
	text, _ := d.Logs(ctx, name, client.ContainerLogsOptions{Tail: fmt.Sprint(lines)})
	return text
}

// Logs returns the log of a container.
func (d *Engine) Logs(ctx context.Context, name string, options client.ContainerLogsOptions) (string, error) {
	options.ShowStdout, options.ShowStderr = true, true
	stream, err := d.ContainerLogs(ctx, name, options)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text strings.Builder
	_, err = stdcopy.StdCopy(&text, &text, stream)
	return text.String(), err
}
