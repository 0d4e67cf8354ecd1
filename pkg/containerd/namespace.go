package containerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// with calls do with a client. It does nothing if containerd does not run.
func (r Runtime) with(ctx context.Context, do func(context.Context, *client.Client) error) error {
	err := r.serves(ctx)
	if errors.As(err, new(notRunning)) {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	c, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(namespaces.WithNamespace(ctx, namespace), c)
}

func (r Runtime) countContainers(ctx context.Context) (n int, err error) {
	err = r.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx)
		n = len(all)
		return err
	})
	return n, err
}

// killPods removes all containers and sandboxes of pods.
func (r Runtime) killPods(ctx context.Context) error {
	return r.with(ctx, func(ctx context.Context, c *client.Client) error {
		// containerd also reacts to the end of a pod, so that a call may fail at
		// that moment. Retry with the remaining pods.
		return step.Until(ctx, func(ctx context.Context) error {
			return errors.Join(removeContainers(ctx, c), removeSandboxes(ctx, c))
		}, nil)
	})
}

func (r Runtime) imageNames(ctx context.Context) (names []string, err error) {
	err = r.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.ImageService().List(ctx)
		for _, one := range all {
			names = append(names, one.Name)
		}
		return err
	})
	return names, err
}

// removeImages removes the images that did not exist before: the whole
// namespace, or single images. containerd collects their content with the
// last image.
func (r Runtime) removeImages(ctx context.Context, b before) error {
	if !b.Namespace {
		return r.removeNamespace(ctx)
	}
	return r.with(ctx, func(ctx context.Context, c *client.Client) error {
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

// removeNamespace removes containerd's namespace of pods with its content,
// including the content of an interrupted load.
func (r Runtime) removeNamespace(ctx context.Context) error {
	return r.with(ctx, func(ctx context.Context, c *client.Client) error {
		for _, remove := range []func(context.Context, *client.Client) error{removeAllImages, removeSnapshots, removeContent, removeLeases} {
			if err := remove(ctx, c); err != nil {
				return err
			}
		}
		return gone(c.NamespaceService().Delete(ctx, namespace))
	})
}

// gone returns nil for a "not found" error.
func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// removeContainers kills and removes the containers of pods, and then their
// sandboxes, whose network the containers share.
func removeContainers(ctx context.Context, c *client.Client) error {
	for _, filter := range []string{`labels."io.cri-containerd.kind"!=sandbox`, ``} {
		all, err := c.Containers(ctx, slices.DeleteFunc([]string{filter}, func(s string) bool { return s == "" })...)
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

func removeAllImages(ctx context.Context, c *client.Client) error {
	all, err := c.ImageService().List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, gone(c.ImageService().Delete(ctx, one.Name)))
	}
	return errors.Join(errs...)
}

func removeSnapshots(ctx context.Context, c *client.Client) error {
	plugins, err := c.IntrospectionService().Plugins(ctx, "type==io.containerd.snapshotter.v1")
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range plugins.Plugins {
		if p.InitErr == nil {
			errs = append(errs, emptySnapshotter(ctx, c.SnapshotService(p.ID)))
		}
	}
	return errors.Join(errs...)
}

// emptySnapshotter removes leaf snapshots until none is left or none can be
// removed.
func emptySnapshotter(ctx context.Context, s snapshots.Snapshotter) error {
	for {
		var names []string
		err := s.Walk(ctx, func(_ context.Context, info snapshots.Info) error {
			names = append(names, info.Name)
			return nil
		})
		if err != nil || len(names) == 0 {
			return gone(err)
		}
		var last error
		removed := 0
		for _, name := range names {
			if err := gone(s.Remove(ctx, name)); err != nil {
				last = err
			} else {
				removed++
			}
		}
		if removed == 0 {
			return last
		}
	}
}

func removeContent(ctx context.Context, c *client.Client) error {
	var all []digest.Digest
	err := c.ContentStore().Walk(ctx, func(info content.Info) error {
		all = append(all, info.Digest)
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := gone(c.ContentStore().Delete(ctx, d)); err != nil {
			return err
		}
	}
	uploads, err := c.ContentStore().ListStatuses(ctx)
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if err := gone(c.ContentStore().Abort(ctx, u.Ref)); err != nil {
			return err
		}
	}
	return nil
}

// removeLeases ends with a synchronous garbage collection, which removes the
// files.
func removeLeases(ctx context.Context, c *client.Client) error {
	all, err := c.LeasesService().List(ctx)
	if err != nil {
		return err
	}
	for _, l := range all {
		if err := gone(c.LeasesService().Delete(ctx, l)); err != nil {
			return err
		}
	}
	last, err := c.LeasesService().Create(ctx, leases.WithID("kube-bootstrap-collect"))
	if err != nil {
		return err
	}
	return gone(c.LeasesService().Delete(ctx, last, leases.SynchronousDelete))
}
