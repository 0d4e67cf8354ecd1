package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Start starts a container, also while the engine has no connection to containerd for a moment.
func (d *Engine) Start(ctx context.Context, name string) error {
	return startContainer(ctx, d.Client, name)
}

// StartedAt returns the time of a container's last start; ok is false unless it runs.
func (d *Engine) StartedAt(ctx context.Context, name string) (at time.Time, ok bool, err error) {
	now, err := d.state(ctx, name)
	if absent(err) {
		return at, false, nil
	}
	if err != nil || !now.Running {
		return at, false, err
	}
	at, err = time.Parse(time.RFC3339Nano, now.StartedAt)
	return at, err == nil, err
}

// Process returns the process ID of a container; running is false unless it runs.
func (d *Engine) Process(ctx context.Context, name string) (pid int, running bool, err error) {
	now, err := d.state(ctx, name)
	return now.Pid, now.Running, err
}

// state returns the zero value if the container does not exist.
func (d *Engine) state(ctx context.Context, name string) (container.State, error) {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil {
		return container.State{}, noAnswer(gone(err))
	}
	return *now.Container.State, nil
}

// SwitchOn starts stopped machines and unpauses paused ones, all concurrently.
func (c Machines) SwitchOn(ctx context.Context, names ...string) error {
	return host.Together(names, func(name string) error {
		if err := c.unpause(ctx, name); err != nil {
			return err
		}
		_, err := c.api.ContainerStart(ctx, name, client.ContainerStartOptions{})
		return step.Wrap(err, "start %s", name)
	})
}

// SwitchOff stops machines concurrently and waits until they have stopped, if they exist.
func (c Machines) SwitchOff(ctx context.Context, names ...string) error {
	return host.Together(names, func(name string) error {
		if err := c.unpause(ctx, name); err != nil { // a paused process receives no signal
			return err
		}
		_, err := c.api.ContainerStop(ctx, name, client.ContainerStopOptions{})
		return step.Wrap(gone(err), "shut down %s", name)
	})
}

// WhilePaused calls do while all machines are paused: their disks are then consistent with
// one another, as after a power failure of all at the same moment. The machines are unpaused
// even after an error or an interrupt.
func (c Machines) WhilePaused(ctx context.Context, names []string, do func() error) error {
	err := c.pauseAll(ctx, names)
	if err == nil {
		err = do()
	}
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return errors.Join(err, host.Together(names, func(name string) error { return c.unpause(ctx, name) }))
}

func (c Machines) pauseAll(ctx context.Context, names []string) error {
	limited := step.WithLimit(ctx, step.CheckLimit(ctx))
	return host.Together(names, func(name string) error {
		return step.Wrap(step.Until(limited, func(context.Context) error { return c.pause(ctx, name) }, nil), "pause %s", name)
	})
}

// pause returns a final error, except "unable to freeze": with cgroup v1, runc 1.1.5 gives up
// if the machine starts processes faster than runc can freeze them.
// https://github.com/opencontainers/cgroups/blob/v0.1.0/fs/freezer.go#L43-L64
func (c Machines) pause(ctx context.Context, name string) error {
	_, err := c.api.ContainerPause(ctx, name, client.ContainerPauseOptions{})
	if errdefs.IsConflict(err) {
		now, look := c.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if look == nil && (now.Container.State.Paused || !now.Container.State.Running) {
			return nil
		}
	}
	if err != nil && strings.Contains(err.Error(), "unable to freeze") {
		return err
	}
	return step.Final(err)
}

// unpause unpauses a machine. A machine that is not paused is not an error.
func (c Machines) unpause(ctx context.Context, name string) error {
	now, err := c.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil || !now.Container.State.Paused {
		return step.Wrap(gone(err), "inspect container %s", name)
	}
	_, err = c.api.ContainerUnpause(ctx, name, client.ContainerUnpauseOptions{})
	return step.Wrap(err, "unpause %s", name)
}

// removeContainer removes a container, running or not. An engine that already removes it for
// a killed caller refuses a second removal; removeContainer waits for the end of the first.
func removeContainer(ctx context.Context, api *client.Client, name string) error {
	_, err := api.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !errdefs.IsConflict(err) {
		return gone(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, step.Limit(ctx), err) //nolint:forbidigo // step.Limit, with a cause of its own
	defer cancel()
	end := api.ContainerWait(ctx, name, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-end.Result:
		return nil
	case err := <-end.Error:
		return gone(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// removeAnyway removes a container, also after a cancellation.
func removeAnyway(ctx context.Context, api *client.Client, id string) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	_, err := api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
	return gone(err)
}
