//go:build root

package offline

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/klauspost/compress/zstd"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func dockerWorld(t *testing.T, d *docker.Engine, files func() string) func() string {
	return func() string {
		list, err := d.ImageList(t.Context(), client.ImageListOptions{All: true})
		must.NoError(t, err)
		var b strings.Builder
		for _, i := range list.Items {
			b.WriteString(i.ID + " " + strings.Join(i.RepoTags, " ") + "\n")
		}
		return b.String() + files()
	}
}

func TestLoad(t *testing.T) {
	d, containerdSocket := dockertest.Start(t)
	for _, c := range []struct {
		name  string
		store imagestore.Target
		world func(func() string) func() string
	}{
		{"bootstrap Docker", imagestore.Docker(image.Bootstrap, d), func(f func() string) func() string { return dockerWorld(t, d, f) }},
		{"main Docker", imagestore.Docker(image.Main, d), func(f func() string) func() string { return dockerWorld(t, d, f) }},
		{"containerd", imagestore.Containerd(containerdSocket, "native", t.TempDir(), nil), func(f func() string) func() string { return containerdWorld(t, containerdSocket, f) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sourceOf(t)
			hosttest.Contract(t, c.world(hosttest.Tree(t, s.Files.Root)), s.Load(c.store))
			withoutBundle(t, s, c.store)
		})
	}
}

// TestLoadOfABundleThatLies: somebody changed a blob and put the digest of its
// frame right, so it is found only while the store reads.
func TestLoadOfABundleThatLies(t *testing.T) {
	d, containerdSocket := dockertest.Start(t)
	none := func() string { return "" }
	const ours = "its content does not match its digest: the bundle is damaged"
	pods := imagestore.Containerd(containerdSocket, "native", t.TempDir(), nil)
	for _, c := range []struct {
		store imagestore.Target
		world func() string
		frame int // of the manifests, or of the layers
		// A layer of that size and more is looked at by the store alone.
		smallest int64
		says     string
	}{
		{imagestore.Docker(image.Bootstrap, d), dockerWorld(t, d, none), 0, 0, ours},
		{imagestore.Docker(image.Main, d), dockerWorld(t, d, none), 0, 0, ours},
		{imagestore.Docker(image.Main, d), dockerWorld(t, d, none), 1, 0, ours},
		{imagestore.Docker(image.Main, d), dockerWorld(t, d, none), 1, image.ManifestLimit, ""},
		{pods, containerdWorld(t, containerdSocket, none), 0, 0, ours},
		{pods, containerdWorld(t, containerdSocket, none), 1, image.ManifestLimit, ""},
	} {
		s := sourceOf(t)
		s.Path = bundletest.Rewrite(t, s.Path, c.frame, lying(c.smallest))
		before := c.world()
		err := s.Load(c.store).Apply(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v", c.store.Kind(), err)
		}
		if left := hosttest.Diff(before, c.world()); len(left) > 0 {
			t.Errorf("%s: left behind: %q", c.store.Kind(), left)
		}
	}
	if err := noContent(t.Context(), containerdSocket); err != nil {
		t.Error(err)
	}
}

// lying changes each member that is large enough, but not where a tar in it
// would no longer be one.
func lying(smallest int64) func(plain []byte) []byte {
	return func(plain []byte) []byte {
		plain = bytes.Clone(plain)
		archive := tar.NewReader(bytes.NewReader(plain))
		for at := int64(0); ; {
			h, err := archive.Next()
			if err != nil {
				return plain
			}
			if h.Size >= smallest {
				plain[at+512+h.Size/2] ^= 0x40
			}
			at += 512 + (h.Size+511)/512*512
		}
	}
}

// withoutBundle: a host with its images is known as such, and does not need a bundle any more. Without
// them the error names the missing file.
func withoutBundle(t *testing.T, s Source, store imagestore.Target) {
	has := func() bool {
		from, err := s.Open()
		must.NoError(t, err)
		defer from.Close()
		return s.Has(t.Context(), from, store)
	}
	if has() {
		t.Error("the store has images before they are loaded")
	}
	must.NoError(t, s.Load(store).Apply(t.Context()))
	if !has() {
		t.Error("the store lacks images after they are loaded")
	}
	gone := s
	gone.Path += ".gone"
	if diff, err := gone.Load(store).Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("images are there, and still: %v %v", diff, err)
	}
	must.NoError(t, s.Load(store).Undo(t.Context()))
	if _, err := gone.Load(store).Check(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no images, no bundle: %v", err)
	}
}

// TestInterruptedLoadThatDockerCompleted: Docker finishes an archive that it has received.
// The next run notes that, so that later runs need no source.
func TestInterruptedLoadThatDockerCompleted(t *testing.T) {
	d, _ := dockertest.Start(t)
	s := sourceOf(t)
	store := imagestore.Docker(image.Bootstrap, d)
	step, l := s.Load(store), loading{s, store}
	must.NoError(t, step.Apply(t.Context()))
	must.NoError(t, s.Files.Write(l.loadingPath(), nil, 0o600))
	if diff, err := step.Check(t.Context()); err != nil || len(diff) != 1 {
		t.Errorf("interrupted: %v %v", diff, err)
	}
	must.NoError(t, step.Apply(t.Context()))
	if diff, err := step.Check(t.Context()); err != nil || len(diff) > 0 || !l.ours() {
		t.Errorf("completed: %v %v, ours: %v", diff, err, l.ours())
	}
}

func TestKeptImagesSurviveUndo(t *testing.T) {
	d, _ := dockertest.Start(t)
	s := sourceOf(t)
	s.KeepImages = true
	load := s.Load(imagestore.Docker(image.Bootstrap, d))
	must.NoError(t, errors.Join(load.Apply(t.Context()), load.Undo(t.Context())))
	if diff, err := load.Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("after Undo: %v %v", diff, err)
	}
}

// TestOtherToolsReadABundle: the file serves where this program is not at hand.
func TestOtherToolsReadABundle(t *testing.T) {
	d, containerdSocket := dockertest.Start(t)
	path := writeBundle(t, bundletest.Images(t, bundletest.Versions(t), "amd64"))
	b, err := bundle.Open(path)
	must.NoError(t, err)
	defer b.Close()
	must.NoError(t, b.Verify(t.Context()))
	file, err := os.Open(path)
	must.NoError(t, err)
	defer file.Close()
	plain, err := zstd.NewReader(file)
	must.NoError(t, err)
	defer plain.Close()
	if err := d.Images().Load(t.Context(), plain); err != nil {
		t.Fatalf("zstd -dc BUNDLE | docker load: %v", err)
	}
	err = withContainerd(t.Context(), containerdSocket, func(ctx context.Context, c *containerd.Client) error {
		if _, err := file.Seek(0, 0); err != nil {
			return err
		}
		plain, err := zstd.NewReader(file)
		if err != nil {
			return err
		}
		defer plain.Close()
		_, err = c.Import(ctx, plain)
		return err
	})
	if err != nil {
		t.Fatalf("zstd -dc BUNDLE | ctr images import -: %v", err)
	}
	for _, ref := range image.References(image.Catalogue(bundletest.Versions(t), "")) {
		if has, err := d.Images().Has(t.Context(), ref); err != nil || !has {
			t.Errorf("docker load brought no %s: %v", ref, err)
		}
	}
}
