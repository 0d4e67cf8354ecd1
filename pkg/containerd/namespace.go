package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ownerLabel marks containerd's namespace of pods if kube-bootstrap created
// it. Undo then removes the whole namespace, also if all records are lost.
const ownerLabel = "kube-bootstrap.dev/owner"

func (s Socket) countContainers(ctx context.Context) (n int, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx)
		n = len(all)
		return err
	})
	return n, err
}

func (s Socket) imageNames(ctx context.Context) (names []string, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.ImageService().List(ctx)
		for _, one := range all {
			names = append(names, one.Name)
		}
		return err
	})
	return names, err
}

// removeImages removes the images that did not exist before, or the whole namespace. containerd
// collects their content with the last image.
func (s Socket) removeImages(ctx context.Context, b before) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		if !b.Namespace {
			return removeNamespace(ctx, c)
		}
		all, err := c.ImageService().List(ctx)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(i images.Image) bool { return slices.Contains(b.Images, i.Name) })
		for i, one := range all {
			var options []images.DeleteOpt
			if i == len(all)-1 {
				options = append(options, images.SynchronousDelete())
			}
			if err := gone(c.ImageService().Delete(ctx, one.Name, options...)); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeNamespace removes the namespace with its content, also that of an interrupted load.
func removeNamespace(ctx context.Context, c *client.Client) error {
	if err := imagestore.Empty(ctx, c); err != nil {
		return err
	}
	return gone(c.NamespaceService().Delete(ctx, namespace))
}

// hasNamespace reports whether the namespace of pods exists, and whether we created it.
func (s Socket) hasNamespace(ctx context.Context) (is, made bool, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.NamespaceService().List(ctx)
		if is = slices.Contains(all, namespace); !is || err != nil {
			return err
		}
		labels, err := c.NamespaceService().Labels(ctx, namespace)
		made = labels[ownerLabel] != ""
		return gone(err)
	})
	return is, made, err
}

// Left lists the pods that remain in a namespace with ownerLabel.
func (s Socket) Left(ctx context.Context) ([]string, error) {
	_, made, err := s.hasNamespace(ctx)
	if err != nil || !made {
		return nil, err
	}
	n, err := s.countContainers(ctx)
	if n == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d containers of pods in containerd's namespace %s", n, namespace)}, err
}

// killPods removes all containers and sandboxes of pods.
func (s Socket) killPods(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		// containerd also reacts to the end of a pod, so that a call may fail then.
		return step.Until(ctx, func(ctx context.Context) error {
			return errors.Join(removeContainers(ctx, c), removeSandboxes(ctx, c))
		}, nil)
	})
}

// removeContainers removes containers before their sandboxes, whose network they share.
func removeContainers(ctx context.Context, c *client.Client) error {
	for _, filter := range []string{`labels."io.cri-containerd.kind"!=sandbox`, ``} {
		all, err := c.Containers(ctx, filter)
		if err != nil {
			return err
		}
		if err := forEach(all, func(one client.Container) error { return removeContainer(ctx, one) }); err != nil {
			return err
		}
	}
	return nil
}

func removeContainer(ctx context.Context, one client.Container) error {
	task, err := one.Task(ctx, nil)
	if err == nil {
		// A process of an exited container would keep the cgroup in use.
		_ = task.Kill(ctx, syscall.SIGKILL, client.WithKillAll)
		_, err = task.Delete(ctx, client.WithProcessKill)
	}
	if err = gone(err); err == nil {
		err = gone(one.Delete(ctx, client.WithSnapshotCleanup))
	}
	if err != nil {
		return fmt.Errorf("container %s: %w", one.ID(), err)
	}
	return nil
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
	return forEach(all, func(one sandbox.Sandbox) error { return gone(c.SandboxStore().Delete(ctx, one.ID)) })
}

// gone returns nil for a "not found" error.
func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
