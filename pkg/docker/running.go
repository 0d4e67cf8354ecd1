package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// RunningIDs returns the containers that run, oldest first.
func (d *Engine) RunningIDs(ctx context.Context) ([]string, error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range slices.Backward(list.Items) {
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// StopAll stops containers, as a daemon does that stops itself.
func (d *Engine) StopAll(ctx context.Context, ids []string) error {
	return Together(ids, func(id string) error {
		_, err := d.ContainerStop(ctx, id, client.ContainerStopOptions{})
		return gone(err)
	})
}

// StartAll starts containers that do not run. A missing container is not an error.
// Those that fail are tried once more after the others, as one may need
// another's network.
func (d *Engine) StartAll(ctx context.Context, ids []string) error {
	failed, _ := d.startEach(ctx, ids)
	_, err := d.startEach(ctx, failed)
	return err
}

func (d *Engine) startEach(ctx context.Context, ids []string) (failed []string, err error) {
	var errs []error
	for _, id := range ids {
		_, err := d.ContainerStart(ctx, id, client.ContainerStartOptions{})
		if err == nil || errdefs.IsNotFound(err) {
			continue
		}
		failed = append(failed, id)
		errs = append(errs, fmt.Errorf("start container %s again: %w", id[:min(12, len(id))], err))
	}
	return failed, errors.Join(errs...)
}

// StartedAt returns the time of a container's last start; ok is false unless it
// runs.
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

// Process returns the process ID of a container on the engine's machine;
// running is false unless the container runs.
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
