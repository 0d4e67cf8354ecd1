// Package restart brings the containers of a Docker engine over a restart of the engine.
package restart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RunningContainer is a container that runs.
type RunningContainer struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Paused bool   `json:"paused,omitempty"`
	// AutoRemove states that the engine removes the container when it stops (`docker run --rm`,
	// https://github.com/moby/moby/pull/20848).
	AutoRemove bool `json:"autoRemove,omitempty"`
}

// swarmTask is the label of a container that swarm mode starts and replaces by itself.
const swarmTask = "com.docker.swarm.task"

// Running returns the containers that run, oldest first, except for those of swarm.
func Running(ctx context.Context, engine *docker.Engine) (all []RunningContainer, err error) {
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range slices.Backward(list.Items) {
		if _, task := c.Labels[swarmTask]; task {
			continue
		}
		found, err := engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		now := found.Container
		all = append(all, RunningContainer{
			ID: c.ID, Name: strings.TrimPrefix(now.Name, "/"), Paused: now.State.Paused,
			AutoRemove: now.HostConfig.AutoRemove,
		})
	}
	return all, nil
}

// Stop stops containers in the way a daemon stops them when it shuts down.
func Stop(ctx context.Context, engine *docker.Engine, all []RunningContainer) error {
	return host.Together(all, func(c RunningContainer) error {
		_, err := engine.ContainerStop(ctx, c.ID, client.ContainerStopOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// startedAtOnce is the number of containers that start at the same time. More would only
// compete for the disk.
const startedAtOnce = 4

// Start starts the containers that do not run, and pauses the containers that were paused before. It
// returns an error for each container that it cannot bring back. A container may need
// another one, for example its network, so failed ones are started again while others succeed.
func Start(ctx context.Context, engine *docker.Engine, all []RunningContainer) (failed []error) {
	for before := len(all) + 1; len(all) > 0 && len(all) < before; {
		before = len(all)
		all, failed = startEach(ctx, engine, all)
	}
	return failed
}

func startEach(
	ctx context.Context, engine *docker.Engine, all []RunningContainer,
) (again []RunningContainer, failed []error) {
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(startedAtOnce)
	for i, c := range all {
		group.Go(func() error { errs[i] = bringBack(ctx, engine, c); return nil })
	}
	_ = group.Wait() // errs has the errors
	for i, err := range errs {
		if err != nil {
			again, failed = append(again, all[i]), append(failed, err)
		}
	}
	return again, failed
}

// bringBack gives each container a limit of its own. A container that somebody has removed
// meanwhile is not an error.
func bringBack(ctx context.Context, engine *docker.Engine, c RunningContainer) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	if c.AutoRemove {
		return stillRuns(ctx, engine, c)
	}
	err := engine.Start(ctx, c.ID)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("container %s: it does not run any more: %w; start it with `docker start %[1]s`", c.Name, err)
	}
	if !c.Paused {
		return nil
	}
	// it is paused already
	if _, err := engine.ContainerPause(ctx, c.ID, client.ContainerPauseOptions{}); err != nil &&
		!errdefs.IsConflict(err) {
		return fmt.Errorf("container %s: it is not paused any more: %w; pause it with `docker pause %[1]s`",
			c.Name, err)
	}
	return nil
}

// stillRuns does not start a container: the engine is about to remove it.
func stillRuns(ctx context.Context, engine *docker.Engine, c RunningContainer) error {
	if _, runs, err := engine.Process(ctx, c.ID); err != nil || runs {
		return err
	}
	return fmt.Errorf("container %s: Docker has removed it when it stopped, because it was started with --rm; create "+
		"it again", c.Name)
}
