package bootstrapdocker

import (
	"context"
	"slices"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// removeSnapshots removes all snapshots, children before their parents.
func removeSnapshots(ctx context.Context, c *containerd.Client) error {
	plugins, err := c.IntrospectionService().Plugins(ctx, `type==io.containerd.snapshotter.v1`)
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
	if err != nil {
		return ignoreNotFound(err)
	}
	for _, name := range childrenFirst(parent) {
		if err := ignoreNotFound(s.Remove(ctx, name)); err != nil {
			return err
		}
	}
	return nil
}

func childrenFirst(parent map[string]string) []string {
	depth := func(name string) (n int) {
		for ; name != ""; name = parent[name] {
			n++
		}
		return n
	}
	var names []string
	for name := range parent {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return depth(b) - depth(a) })
	return names
}

func removeContent(ctx context.Context, c *containerd.Client) error {
	var blobs []digest.Digest
	err := c.ContentStore().Walk(ctx, func(info content.Info) error {
		blobs = append(blobs, info.Digest)
		return nil
	})
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if err := ignoreNotFound(c.ContentStore().Delete(ctx, blob)); err != nil {
			return err
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
