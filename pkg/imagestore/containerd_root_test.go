//go:build root

package imagestore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/archive"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// imagesFor returns a bundle, and its images for a store.
func imagesFor(t *testing.T, store Target) (*bundle.Bundle, []bundle.MultiPlatformImage) {
	t.Helper()
	v := bundletest.Versions(t)
	builder, err := bundle.NewBuilder(v, bundletest.Images(t, v, "amd64"))
	must.NoError(t, err)
	builder.Cache = t.TempDir()
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, builder.Write(t.Context(), path))
	b, err := bundle.Open(path)
	must.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	var images []bundle.MultiPlatformImage
	for _, i := range b.Manifest.Images {
		if i.In(store.Kind()) {
			images = append(images, i)
		}
	}
	return b, images
}

func load(t *testing.T, b *bundle.Bundle, images []bundle.MultiPlatformImage, into Target) error {
	t.Helper()
	return into.Load(t.Context(), b.Archive(t.Context(), images, "amd64").Open)
}

// wantStates reports each image that is not in the wanted state.
func wantStates(t *testing.T, when string, store Target, images []bundle.MultiPlatformImage, want Comparison) {
	t.Helper()
	for _, i := range images {
		p := i.Platforms["amd64"]
		got, err := store.State(t.Context(), RequiredImage{
			Ref: i.Ref, Index: i.Index, Manifest: p.Manifest, Config: p.Config, Layers: p.Layers,
		})
		if err != nil || got != want {
			t.Errorf("%s: %s: state %d, want %d: %v", when, i.Ref, got, want, err)
		}
	}
}

// TestContainerdNamesOnlyUnpackedImages: an image that cannot be unpacked gets no
// name, and an image whose snapshots are lost is absent and can be loaded again.
func TestContainerdNamesOnlyUnpackedImages(t *testing.T) {
	_, socket := dockertest.Start(t)
	dir := t.TempDir()
	store := Containerd(socket, "native", dir, nil)
	b, images := imagesFor(t, store)
	if err := load(t, b, images, Containerd(socket, "none", dir, nil)); err == nil {
		t.Error("unpacked without a snapshotter")
	}
	wantNames(t, socket, 0)
	must.NoError(t, load(t, b, images, store))
	wantStates(t, "loaded", store, images, Same)
	wantNames(t, socket, len(images))
	dropSnapshots(t, socket, "native")
	wantStates(t, "without snapshots", store, images, Absent)
	if err := load(t, b, images, store); err != nil {
		t.Error(err)
	}
	wantStates(t, "loaded again", store, images, Same)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v %v", left, err)
	}
	if err := store.Remove(t.Context(), append(bundle.References(images), "registry.k8s.io/none:1")); err != nil {
		t.Error(err)
	}
	wantStates(t, "removed", store, images, Absent)
	wantNames(t, socket, 0)
}

// TestContainerdSharesFiles: a large file that another directory has of the same
// layer is there as a link. Without its other name, the image stays complete.
func TestContainerdSharesFiles(t *testing.T) {
	_, socket := dockertest.Start(t)
	others := map[digest.Digest]string{}
	store := Containerd(socket, "native", t.TempDir(),
		func(context.Context) (map[digest.Digest]string, error) { return others, nil })
	b, images := imagesFor(t, store)
	// Docker mounts its data directory on itself, and links do not cross mounts.
	dir := filepath.Join(filepath.Dir(socket), "../../data/unpacked")
	layer := unpackKubernetes(t, b, images, dir)
	others[layer] = dir
	must.NoError(t, load(t, b, images, store))
	var stat unix.Stat_t
	must.NoError(t, unix.Stat(filepath.Join(dir, "hyperkube"), &stat))
	if stat.Nlink != 2 {
		t.Errorf("the file has %d names, want 2", stat.Nlink)
	}
	must.NoError(t, os.RemoveAll(dir))
	wantStates(t, "loaded", store, images, Same)
}

// unpackKubernetes unpacks the layer that contains Kubernetes into a directory.
func unpackKubernetes(
	t *testing.T, b *bundle.Bundle, images []bundle.MultiPlatformImage, dir string,
) (layer digest.Digest) {
	t.Helper()
	at := slices.IndexFunc(images, func(i bundle.MultiPlatformImage) bool { return i.Name == "hyperkube" })
	layers := images[at].Platforms["amd64"].Layers
	layer = layers[len(layers)-1]
	var files bytes.Buffer
	must.NoError(t, b.ReadBlobs([]digest.Digest{layer}, func(_ digest.Digest, copyTo func(io.Writer) error) error {
		return copyTo(&files)
	}))
	must.NoError(t, os.Mkdir(dir, 0o755))
	_, err := archive.Apply(t.Context(), dir, &files)
	must.NoError(t, err)
	return layer
}

func wantNames(t *testing.T, socket string, want int) {
	t.Helper()
	err := containerdStore{socket: socket}.with(t.Context(), func(ctx context.Context, c *containerd.Client) error {
		all, err := c.ImageService().List(ctx)
		if len(all) != want {
			t.Errorf("containerd has the images %v, want %d", all, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// dropSnapshots removes all snapshots, children before their parents.
func dropSnapshots(t *testing.T, socket, snapshotter string) {
	t.Helper()
	err := containerdStore{socket: socket}.with(t.Context(), func(ctx context.Context, c *containerd.Client) error {
		all := c.SnapshotService(snapshotter)
		return step.Until(ctx, func(ctx context.Context) (left error) {
			err := all.Walk(ctx, func(ctx context.Context, i snapshots.Info) error {
				left = errors.Join(left, all.Remove(ctx, i.Name))
				return nil
			})
			return errors.Join(left, err)
		}, nil)
	})
	must.NoError(t, err)
}

// TestDockerComparesLayers: an image with other layers under the same name is
// another image, and a removed image is absent.
func TestDockerComparesLayers(t *testing.T) {
	engine, _ := dockertest.Start(t)
	store := Docker(image.Main, engine)
	b, images := imagesFor(t, store)
	wantStates(t, "empty", store, images, Absent)
	must.NoError(t, load(t, b, images, store))
	wantStates(t, "loaded", store, images, Same)
	other := images[0]
	other.Platforms = map[string]bundle.PlatformImage{"amd64": {Layers: other.Platforms["amd64"].Layers[:1]}}
	wantStates(t, "with other layers", store, []bundle.MultiPlatformImage{other}, Other)
	if err := store.Remove(t.Context(), bundle.References(images)); err != nil {
		t.Error(err)
	}
	wantStates(t, "removed", store, images, Absent)
}
