package offline

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

func versions(t testing.TB) image.Versions {
	t.Helper()
	v, err := image.For("", image.Versions{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tarOf packs name, content pairs.
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := header(files[i], int64(len(files[i+1])))
		h.Mode = 0o755
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func small(t testing.TB, img image.Image, arch string, layers ...[]byte) image.Built {
	t.Helper()
	p := image.Platform(arch)
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	oci, err := mutate.ConfigFile(base, &v1.ConfigFile{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		oci, err = mutate.Append(oci, mutate.Addendum{Layer: static.NewLayer(l, types.OCIUncompressedLayer), MediaType: types.OCIUncompressedLayer})
		if err != nil {
			t.Fatal(err)
		}
	}
	return image.Built{Image: img, Arch: arch, OCI: oci}
}

// fakePlugin answers VERSION as a CNI plugin does.
func fakePlugin(versions string) string {
	return "#!/bin/sh\necho '{\"supportedVersions\":[" + versions + "]}'\n"
}

// writeSmall writes a bundle of tiny images for two architectures.
func writeSmall(t testing.TB) string { return writeFor(t, "amd64", "arm") }

func writeFor(t testing.TB, archs ...string) string {
	t.Helper()
	return writeOf(t, contentsFor(t, versions(t), archs...))
}

func writeOf(t testing.TB, c *contents) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	if err := write(t.Context(), path, c); err != nil {
		t.Fatal(err)
	}
	return path
}

// contentsFor has tiny images, but for a layer of hyperkube, which alone
// changes with the version.
func contentsFor(t testing.TB, v image.Versions, archs ...string) *contents {
	t.Helper()
	var built []image.Built
	for _, arch := range archs {
		for _, img := range image.Catalogue(v, "") {
			userland := tarOf(t, "etc/passwd", "root:x:0:0:root:/:/bin/sh\n")
			own := tarOf(t, img.Name, strings.Repeat(img.Name+" for "+arch+"\n", 50))
			one := small(t, img, arch, userland, own)
			if img.Name == "hyperkube" {
				plugins := tarOf(t, "opt/cni/bin/bridge", fakePlugin(`"1.0.0"`)+"# ours\n", "opt/cni/bin/portmap", fakePlugin(`"1.0.0"`)+"# ours too\n",
					"opt/cni/bin/host-local", fakePlugin(`"1.0.0"`), "opt/cni/bin/loopback", fakePlugin(`"1.0.0"`))
				own = tarOf(t, img.Name, strings.Repeat(v.Kubernetes+" for "+arch+"\n", image.ManifestLimit/len(v.Kubernetes)))
				one = small(t, img, arch, userland, plugins, own)
				one.Parts = []image.Part{{Name: "userland", Dir: t.TempDir()}, {Name: "cni", Version: v.CNI}} // a cache of its own
			}
			built = append(built, one)
		}
	}
	c, err := collect(v, built)
	if err != nil {
		t.Fatal(err)
	}
	c.cache = t.TempDir()
	return c
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestRoundTrip(t *testing.T) {
	path := writeSmall(t)
	if err := verified(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b := opened(t, path)
	if got := strings.Join(b.Archs(), " "); got != "amd64 arm" {
		t.Errorf("architectures: %s", got)
	}
	for _, ref := range List(versions(t), "") {
		if _, err := b.find(ref, "arm"); err != nil {
			t.Errorf("find %s: %v", ref, err)
		}
	}
	if _, err := b.find("registry.k8s.io/pause:3.10.2", "s390x"); err == nil || !strings.Contains(err.Error(), "it is for amd64, arm, not for s390x") {
		t.Errorf("wrong architecture: %v", err)
	}
	if _, err := b.find("registry.k8s.io/pause:1", "arm"); err == nil || !strings.Contains(err.Error(), "holds no image") {
		t.Errorf("wrong image: %v", err)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	one, two := contentsFor(t, versions(t), "arm"), contentsFor(t, versions(t), "arm")
	if !bytes.Equal(read(t, writeOf(t, one)), read(t, writeOf(t, two))) {
		t.Error("two bundles of the same images differ")
	}
}

func TestLeavesNothingBesideTheBundle(t *testing.T) {
	path := writeSmall(t)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the bundle: %v %v", entries, err)
	}
}

func TestArchiveHoldsOneArchitecture(t *testing.T) {
	b := opened(t, writeSmall(t))
	r := (&reading{Bundle: b, ctx: t.Context(), arch: "arm", progress: io.Discard}).open(b.Images...)
	defer r.Close()
	archive, names := tar.NewReader(r), map[string]bool{}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
	}
	for _, e := range b.Images {
		for _, l := range append(e.Variants["arm"].Layers, e.Variants["arm"].Config, e.Variants["arm"].Manifest) {
			if !names[blobName(l)] {
				t.Errorf("%s is missing", blobName(l))
			}
		}
		if names[blobName(e.Variants["amd64"].Config)] {
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
	c, err := collect(versions(t), []image.Built{small(t, image.Catalogue(versions(t), "")[0], "amd64", tarOf(t, "a", "b"))})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bundle")
	if err := write(ctx, path, c); err == nil {
		t.Error("wrote a bundle although it was cancelled")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("half a bundle was left")
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
