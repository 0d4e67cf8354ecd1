//go:build root

package imagestore

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// member is a file of an archive.
type member struct {
	*tar.Header
	data []byte
}

// loadChanged loads an archive of the images that change has changed.
func loadChanged(t *testing.T, b *bundle.Bundle, images []bundle.MultiPlatformImage, into Target, change func([]member)) error {
	t.Helper()
	from := b.Archive(t.Context(), images, "amd64").Open()
	defer from.Close()
	var all []member
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.NoError(t, err)
		data, err := io.ReadAll(archive)
		must.NoError(t, err)
		all = append(all, member{h, data})
	}
	change(all)
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, m := range all {
		must.NoError(t, archive.WriteHeader(m.Header))
		_, err := archive.Write(m.data)
		must.NoError(t, err)
	}
	must.NoError(t, archive.Close())
	return into.Load(t.Context(), func() io.ReadCloser { return io.NopCloser(&out) })
}

// TestContainerdUnpacksWhileItReads: without a directory for staged layers, an
// archive with its configs first can be loaded, and one with its layers first cannot.
func TestContainerdUnpacksWhileItReads(t *testing.T) {
	_, socket := dockertest.Start(t)
	staged := Containerd(socket, "native", t.TempDir(), nil)
	unstaged := Containerd(socket, "native", "/nonexistent", nil)
	b, images := imagesFor(t, staged)
	if err := loadChanged(t, b, images, unstaged, slices.Reverse[[]member]); err == nil {
		t.Error("layers before their configs were not staged")
	}
	must.NoError(t, loadChanged(t, b, images, staged, slices.Reverse[[]member]))
	wantStates(t, "layers first", staged, images, Same)
	must.NoError(t, staged.Remove(t.Context(), bundle.References(images)))
	must.NoError(t, load(t, b, images, unstaged))
	wantStates(t, "configs first", staged, images, Same)
}

// TestContainerdVerifiesLayers: a layer with another content gets no snapshot.
func TestContainerdVerifiesLayers(t *testing.T) {
	_, socket := dockertest.Start(t)
	store := Containerd(socket, "native", t.TempDir(), nil)
	b, images := imagesFor(t, store)
	for name, change := range map[string]func(*member){
		"another byte": func(m *member) { m.data[len(m.data)-1]++ },
		"no tar":       func(m *member) { m.data = bytes.Repeat([]byte("x"), len(m.data)) },
	} {
		err := loadChanged(t, b, images, store, func(all []member) {
			change(&all[slices.IndexFunc(all, func(m member) bool { return m.Size >= image.ManifestLimit })])
		})
		if err == nil {
			t.Errorf("%s: loaded", name)
		}
		wantNames(t, socket, 0)
		wantNoSnapshots(t, socket)
	}
}

func wantNoSnapshots(t *testing.T, socket string) {
	t.Helper()
	err := containerdStore{socket: socket}.with(t.Context(), func(ctx context.Context, c *containerd.Client) error {
		return c.SnapshotService("native").Walk(ctx, func(_ context.Context, i snapshots.Info) error {
			return errors.New("snapshot " + i.Name + " is left")
		})
	})
	must.NoError(t, err)
}
