package offline

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// withContainerd calls do with a client in the namespace of the kubelet.
func withContainerd(ctx context.Context, socket string, do func(context.Context, *containerd.Client) error) error {
	c, err := containerd.New(socket)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(namespaces.WithNamespace(ctx, "k8s.io"), c)
}

func containerdWorld(t *testing.T, socket string, files func() string) func() string {
	return func() string {
		var b strings.Builder
		err := withContainerd(t.Context(), socket, func(ctx context.Context, c *containerd.Client) error {
			all, err := c.ImageService().List(ctx)
			for _, i := range all {
				b.WriteString(i.Name + " " + i.Target.Digest.String() + "\n")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String() + files()
	}
}

func noContent(ctx context.Context, socket string) error {
	return withContainerd(ctx, socket, func(ctx context.Context, c *containerd.Client) error {
		return c.ContentStore().Walk(ctx, func(i content.Info) error { return errors.New("blob " + i.Digest.String() + " is left") })
	})
}

// TestContainerdNamesOnlyWhatIsUnpacked: what cannot be unpacked has no name,
// and what has lost its files is loaded again.
func TestContainerdNamesOnlyWhatIsUnpacked(t *testing.T) {
	_, containerdSocket := engine(t)
	world := containerdWorld(t, containerdSocket, func() string { return "" })
	s, before, dir := sourceOf(t), world(), t.TempDir()
	if err := s.Load(imagestore.Containerd(containerdSocket, "none", dir)).Apply(t.Context()); err == nil {
		t.Error("unpacked without a snapshotter")
	}
	if left := hosttest.Diff(before, world()); len(left) > 0 {
		t.Errorf("named: %q", left)
	}
	store := imagestore.Containerd(containerdSocket, "native", dir)
	load := s.Load(store)
	if err := load.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	dropSnapshots(t, containerdSocket, "native")
	if diff, err := load.Check(t.Context()); err != nil || len(diff) == 0 {
		t.Errorf("without their files: %v %v", diff, err)
	}
	if err := load.Apply(t.Context()); err != nil {
		t.Error(err)
	}
	if diff, err := load.Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("loaded again: %v %v", diff, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v %v", left, err)
	}
}

// dropSnapshots removes all, children before their parents.
func dropSnapshots(t *testing.T, socket, snapshotter string) {
	t.Helper()
	err := withContainerd(t.Context(), socket, func(ctx context.Context, c *containerd.Client) error {
		all := c.SnapshotService(snapshotter)
		return step.Until(ctx, func(ctx context.Context) (left error) {
			err := all.Walk(ctx, func(ctx context.Context, i snapshots.Info) error {
				left = errors.Join(left, all.Remove(ctx, i.Name))
				return nil
			})
			return errors.Join(left, err)
		}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}
