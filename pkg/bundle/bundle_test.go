package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// writeSmall writes a bundle of tiny images for two architectures.
func writeSmall(t testing.TB) string { return writeFor(t, "amd64", "arm") }

func writeFor(t testing.TB, archs ...string) string {
	t.Helper()
	return writeOf(t, builderFor(t, bundletest.Versions(t), archs...))
}

func writeOf(t testing.TB, b *Builder) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, b.Write(t.Context(), path))
	return path
}

// builderFor returns a builder of the images of bundletest, with a cache of its
// own.
func builderFor(t testing.TB, v image.Versions, archs ...string) *Builder {
	t.Helper()
	b, err := NewBuilder(v, bundletest.Images(t, v, archs...))
	must.NoError(t, err)
	b.Cache = t.TempDir()
	return b
}

// verified is what `offline verify` does.
func verified(ctx context.Context, path string, options ...Option) error {
	b, err := Open(path, options...)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Verify(ctx)
}

func opened(t testing.TB, path string, options ...Option) *Bundle {
	t.Helper()
	b, err := Open(path, options...)
	must.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func TestRoundTrip(t *testing.T) {
	path := writeSmall(t)
	must.NoError(t, verified(t.Context(), path))
	b := opened(t, path)
	if got := strings.Join(b.Archs(), " "); got != "amd64 arm" {
		t.Errorf("architectures: %s", got)
	}
	for _, img := range image.Catalogue(bundletest.Versions(t), "") {
		if _, err := b.Find(img.Ref, "arm"); err != nil {
			t.Errorf("find %s: %v", img.Ref, err)
		}
	}
	if _, err := b.Find("registry.k8s.io/pause:3.10.2", "s390x"); err == nil ||
		!strings.Contains(err.Error(), "it is for amd64, arm, not for s390x") {
		t.Errorf("wrong architecture: %v", err)
	}
	if _, err := b.Find("registry.k8s.io/pause:1", "arm"); err == nil ||
		!strings.Contains(err.Error(), "has no image") {
		t.Errorf("wrong image: %v", err)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	one, two := builderFor(t, bundletest.Versions(t), "arm"), builderFor(t, bundletest.Versions(t), "arm")
	if !bytes.Equal(must.Read(t, writeOf(t, one)), must.Read(t, writeOf(t, two))) {
		t.Error("two bundles of the same images differ")
	}
}

func TestLeavesNothingBesideTheBundle(t *testing.T) {
	path := writeSmall(t)
	images, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(images) != 1 {
		t.Errorf("beside the bundle: %v %v", images, err)
	}
}

func TestArchiveHoldsOneArchitecture(t *testing.T) {
	b := opened(t, writeSmall(t))
	r := b.Archive(t.Context(), b.Manifest.Images, "arm").Open()
	defer r.Close()
	archive, names := tar.NewReader(r), map[string]bool{}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		must.NoError(t, err)
		names[h.Name] = true
	}
	for _, e := range b.Manifest.Images {
		for _, l := range append(e.Platforms["arm"].Layers, e.Platforms["arm"].Config, e.Platforms["arm"].Manifest) {
			if !names[blobName(l)] {
				t.Errorf("%s is missing", blobName(l))
			}
		}
		if names[blobName(e.Platforms["amd64"].Config)] {
			t.Errorf("%s for amd64 is in the archive for arm", e.Ref)
		}
	}
	if !names["manifest.json"] || !names["index.json"] || !names["oci-layout"] {
		t.Errorf("a table is missing: %v", names)
	}
}

func TestCancelStopsWriting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, err := NewBuilder(bundletest.Versions(t),
		[]image.Built{bundletest.Image(t, image.Catalogue(bundletest.Versions(t), "")[0], "amd64",
			rootfstest.Tar(t, "a=b"))})
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "bundle")
	if err := b.Write(ctx, path); err == nil {
		t.Error("wrote a bundle although it was cancelled")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("half a bundle was left")
	}
}
