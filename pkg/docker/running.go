package docker

import (
	"context"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

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
		return container.State{}, noAnswer(Gone(err))
	}
	return *now.Container.State, nil
}

// RemoveContainer removes any container with its volumes, running or not. An engine that already
// removes it for a killed caller refuses a second removal; RemoveContainer waits for the end of the first.
func (d *Engine) RemoveContainer(ctx context.Context, name string) error {
	_, err := d.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !errdefs.IsConflict(err) {
		return Gone(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, step.Limit(ctx), err) //nolint:forbidigo // step.Limit, with a cause
	defer cancel()
	end := d.ContainerWait(ctx, name, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-end.Result:
		return nil
	case err := <-end.Error:
		return Gone(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Discard removes a container, also after a cancellation.
func (d *Engine) Discard(ctx context.Context, id string) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	_, err := d.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
	return Gone(err)
}
