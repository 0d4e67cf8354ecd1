package machines

import (
	"context"
	"errors"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SwitchOn starts stopped machines and unpauses paused ones, all concurrently.
func (c Machines) SwitchOn(ctx context.Context, names ...string) error {
	return host.Together(names, func(name string) error {
		if err := c.unpause(ctx, name); err != nil {
			return err
		}
		_, err := c.engine.ContainerStart(ctx, name, client.ContainerStartOptions{})
		return step.Wrap(err, "start %s", name)
	})
}

// SwitchOff stops machines concurrently and waits until they have stopped, if they exist.
func (c Machines) SwitchOff(ctx context.Context, names ...string) error {
	return host.Together(names, func(name string) error {
		if err := c.unpause(ctx, name); err != nil { // a paused process receives no signal
			return err
		}
		_, err := c.engine.ContainerStop(ctx, name, client.ContainerStopOptions{})
		return step.Wrap(docker.Gone(err), "shut down %s", name)
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
		return step.Wrap(step.Until(limited, func(context.Context) error {
			return c.pause(ctx, name)
		}, nil), "pause %s", name)
	})
}

// pause returns a final error, except "unable to freeze": with cgroup v1, runc 1.1.5 gives up
// if the machine starts processes faster than runc can freeze them.
// https://github.com/opencontainers/cgroups/blob/v0.1.0/fs/freezer.go#L43-L64
func (c Machines) pause(ctx context.Context, name string) error {
	_, err := c.engine.ContainerPause(ctx, name, client.ContainerPauseOptions{})
	if errdefs.IsConflict(err) {
		now, look := c.engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
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
	now, err := c.engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil || !now.Container.State.Paused {
		return step.Wrap(docker.Gone(err), "inspect container %s", name)
	}
	_, err = c.engine.ContainerUnpause(ctx, name, client.ContainerUnpauseOptions{})
	return step.Wrap(err, "unpause %s", name)
}
