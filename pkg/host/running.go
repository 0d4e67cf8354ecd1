package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// RunningIDs returns the containers that run, oldest first.
func (d *Docker) RunningIDs(ctx context.Context) ([]string, error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list.Items))
	for i, c := range list.Items {
		ids[len(ids)-1-i] = c.ID
	}
	return ids, nil
}

// StopAll stops containers, as a daemon does that stops itself.
func (d *Docker) StopAll(ctx context.Context, ids []string) error {
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			if _, err := d.ContainerStop(ctx, id, client.ContainerStopOptions{}); !errdefs.IsNotFound(err) {
				errs[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// StartAll starts containers that do not run. One that is gone is no error.
// Those that fail are tried once more after the others, as one may need
// another's network.
func (d *Docker) StartAll(ctx context.Context, ids []string) error {
	failed, _ := d.startEach(ctx, ids)
	_, err := d.startEach(ctx, failed)
	return err
}

func (d *Docker) startEach(ctx context.Context, ids []string) (failed []string, err error) {
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

// Network returns a network of the engine by name; ok is false if there is none.
func (d *Docker) Network(ctx context.Context, name string) (n network.Inspect, ok bool, err error) {
	found, err := d.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return n, false, nil
	}
	return found.Network, err == nil, err
}

// Version returns the engine's version and the newest API version it speaks.
func (d *Docker) Version(ctx context.Context) (version, api string, err error) {
	v, err := d.ServerVersion(ctx, client.ServerVersionOptions{})
	return v.Version, v.APIVersion, err
}

// StartedAt returns when a container was started last; ok is false unless it
// runs. An engine that does not answer runs none.
func (d *Docker) StartedAt(ctx context.Context, name string) (at time.Time, ok bool, err error) {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return at, false, nil
	}
	if err != nil || now.Container.State == nil || !now.Container.State.Running {
		return at, false, err
	}
	at, err = time.Parse(time.RFC3339Nano, now.Container.State.StartedAt)
	return at, err == nil, err
}
