package docker

import (
	"context"
	"errors"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SwitchOn starts stopped machines and unpauses paused ones, all
// concurrently.
func (c Machines) SwitchOn(ctx context.Context, names ...string) error {
	return Together(names, func(name string) error {
		if err := c.unpause(ctx, name); err != nil {
			return err
		}
		_, err := c.api.ContainerStart(ctx, name, client.ContainerStartOptions{})
		return doing("start", name, err)
	})
}

// SwitchOff stops machines concurrently and waits until they have stopped. A
// machine that is stopped or does not exist is not an error.
func (c Machines) SwitchOff(ctx context.Context, names ...string) error {
	return Together(names, func(name string) error {
		if err := c.unpause(ctx, name); err != nil { // a paused process receives no signal
			return err
		}
		_, err := c.api.ContainerStop(ctx, name, client.ContainerStopOptions{})
		return doing("shut down", name, gone(err))
	})
}

// Pause pauses all machines. When it returns, their disks are consistent
// with one another, as after a power failure of all machines at the same
// moment.
func (c Machines) Pause(ctx context.Context, names ...string) error {
	return Together(names, func(name string) error {
		_, err := c.api.ContainerPause(ctx, name, client.ContainerPauseOptions{})
		if errdefs.IsConflict(err) {
			now, look := c.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
			if look == nil && (now.Container.State.Paused || !now.Container.State.Running) {
				return nil
			}
		}
		return doing("pause", name, err)
	})
}

// Unpause unpauses machines. A machine that is not paused is not an error.
func (c Machines) Unpause(ctx context.Context, names ...string) error {
	return Together(names, func(name string) error { return c.unpause(ctx, name) })
}

func (c Machines) unpause(ctx context.Context, name string) error {
	now, err := c.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil || !now.Container.State.Paused {
		return doing("look at", name, gone(err))
	}
	_, err = c.api.ContainerUnpause(ctx, name, client.ContainerUnpauseOptions{})
	return doing("unpause", name, err)
}

// removeContainer removes a container, running or not. If the engine is
// already removing it for a killed caller, it refuses a second removal;
// removeContainer then waits for the end of the first.
func removeContainer(ctx context.Context, api *client.Client, name string) error {
	_, err := api.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !errdefs.IsConflict(err) {
		return gone(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, step.Limit(ctx), err)
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

// Together calls do for all elements concurrently, and joins the errors.
func Together[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = do(one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
