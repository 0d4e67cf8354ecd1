package containerd

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// killPods removes all containers and sandboxes of pods.
func (s Socket) killPods(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		// containerd also reacts to the end of a pod, so that a call may fail at
		// that moment. Retry with the remaining pods.
		return step.Until(ctx, func(ctx context.Context) error {
			return errors.Join(removeContainers(ctx, c), removeSandboxes(ctx, c))
		}, nil)
	})
}

// removeContainers kills and removes the containers of pods, and then their
// sandboxes, whose network the containers share. An empty filter matches all.
func removeContainers(ctx context.Context, c *client.Client) error {
	for _, filter := range []string{`labels."io.cri-containerd.kind"!=sandbox`, ``} {
		all, err := c.Containers(ctx, filter)
		if err != nil {
			return err
		}
		var errs []error
		for _, one := range all {
			if err := removeContainer(ctx, one); err != nil {
				errs = append(errs, fmt.Errorf("container %s: %w", one.ID(), err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

func removeContainer(ctx context.Context, one client.Container) error {
	task, err := one.Task(ctx, nil)
	if err == nil {
		// Kill all processes: a process of an exited container would keep the
		// cgroup in use.
		_ = task.Kill(ctx, syscall.SIGKILL, client.WithKillAll)
		_, err = task.Delete(ctx, client.WithProcessKill)
	}
	if err := gone(err); err != nil {
		return err
	}
	return gone(one.Delete(ctx, client.WithSnapshotCleanup))
}

// removeSandboxes removes the sandbox records of containerd 2.
func removeSandboxes(ctx context.Context, c *client.Client) error {
	all, err := c.SandboxStore().List(ctx)
	if errdefs.IsNotImplemented(err) { // containerd 1.6
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, gone(c.SandboxStore().Delete(ctx, one.ID)))
	}
	return errors.Join(errs...)
}

// gone returns nil for a "not found" error.
func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
