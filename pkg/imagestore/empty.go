package imagestore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"syscall"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RemoveNamespace removes a namespace of containerd with all images, snapshots,
// content and leases, including what an interrupted load has left. Its containers
// must be removed before.
func RemoveNamespace(ctx context.Context, c *containerd.Client, name string) error {
	ctx = namespaces.WithNamespace(ctx, name)
	for _, empty := range []func(context.Context, *containerd.Client) error{removeImages, removeSnapshots,
		removeContent, removeLeases} {
		if err := empty(ctx, c); err != nil {
			return err
		}
	}
	return gone(c.NamespaceService().Delete(ctx, name))
}

// gone returns nil for a "not found" error.
func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// removedAtOnce is the number of containers that are removed at the same time. Most of
// the time of each is a wait for runc.
const removedAtOnce = 8

// RemoveContainers kills and removes the containers of the containerd namespace in
// ctx that match a filter, or all. It joins the errors of all.
func RemoveContainers(ctx context.Context, c *containerd.Client, filters ...string) error {
	all, err := c.Containers(ctx, filters...)
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(removedAtOnce)
	for i, one := range all {
		group.Go(func() error { errs[i] = removeContainer(ctx, one); return nil })
	}
	_ = group.Wait() // the errors are in errs
	return errors.Join(append(errs, err)...)
}

func removeContainer(ctx context.Context, one containerd.Container) error {
	task, err := one.Task(ctx, nil)
	if err == nil {
		// A process of an exited container would keep the cgroup in use.
		_ = task.Kill(ctx, syscall.SIGKILL, containerd.WithKillAll)
		_, err = task.Delete(ctx, containerd.WithProcessKill) // waits for the end of all processes
	}
	if err = gone(err); err == nil {
		err = gone(one.Delete(ctx, containerd.WithSnapshotCleanup))
	}
	return step.Wrap(err, "container %s", one.ID())
}

// removeEach calls remove for each of all. A name that no longer exists is not
// an error.
func removeEach[T any](all []T, remove func(T) error) error {
	for _, one := range all {
		if err := gone(remove(one)); err != nil {
			return err
		}
	}
	return nil
}

func removeImages(ctx context.Context, c *containerd.Client) error {
	all, err := c.ImageService().List(ctx)
	return errors.Join(err, removeEach(all, func(i images.Image) error { return c.ImageService().Delete(ctx, i.Name) }))
}

func removeSnapshots(ctx context.Context, c *containerd.Client) error {
	plugins, err := c.IntrospectionService().Plugins(ctx, "type==io.containerd.snapshotter.v1")
	if err != nil {
		return err
	}
	for _, plugin := range plugins.Plugins {
		if plugin.InitErr != nil {
			continue
		}
		if err := removeSnapshotsOf(ctx, c.SnapshotService(plugin.ID)); err != nil {
			return err
		}
	}
	return nil
}

func removeSnapshotsOf(ctx context.Context, s snapshots.Snapshotter) error {
	parent := map[string]string{}
	err := s.Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		parent[info.Name] = info.Parent
		return nil
	})
	return errors.Join(gone(err),
		removeEach(childrenFirst(parent), func(name string) error { return s.Remove(ctx, name) }))
}

func childrenFirst(parent map[string]string) []string {
	depth := func(name string) (n int) {
		for ; name != ""; name = parent[name] {
			n++
		}
		return n
	}
	return slices.SortedFunc(maps.Keys(parent), func(a, b string) int { return depth(b) - depth(a) })
}

func removeContent(ctx context.Context, c *containerd.Client) error {
	var blobs []digest.Digest
	err := c.ContentStore().Walk(ctx, func(info content.Info) error {
		blobs = append(blobs, info.Digest)
		return nil
	})
	uploads, listErr := c.ContentStore().ListStatuses(ctx)
	return errors.Join(err, listErr,
		removeEach(blobs, func(d digest.Digest) error { return c.ContentStore().Delete(ctx, d) }),
		removeEach(uploads, func(s content.Status) error { return c.ContentStore().Abort(ctx, s.Ref) }))
}

// removeLeases ends with a synchronous garbage collection, which removes the
// files.
func removeLeases(ctx context.Context, c *containerd.Client) error {
	all, err := c.LeasesService().List(ctx)
	if err := errors.Join(err,
		removeEach(all, func(l leases.Lease) error { return c.LeasesService().Delete(ctx, l) })); err != nil {
		return err
	}
	last, err := c.LeasesService().Create(ctx, leases.WithID("kube-bootstrap-collect"))
	if err != nil {
		return err
	}
	return removeEach([]leases.Lease{last},
		func(l leases.Lease) error { return c.LeasesService().Delete(ctx, l, leases.SynchronousDelete) })
}
