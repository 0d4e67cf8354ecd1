package bundle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// programsOver writes a bundle with a program of its own on top of another one.
func programsOver(t *testing.T, base *Bundle, programs map[string]string) string {
	t.Helper()
	v := base.Manifest.Versions
	v.Programs = programs
	hyperkube, err := base.Layers(image.Ref(v, "hyperkube"), "amd64")
	must.NoError(t, err)
	var built []image.Built
	for _, img := range image.Catalogue(v, "")[len(base.Manifest.Images):] {
		one := bundletest.Image(t, img, "amd64")
		if img.Name == "kubelet" {
			one.OCI = over(t, one.OCI, hyperkube)
		}
		own := bundletest.Image(t, img, "amd64", rootfstest.Tar(t, "usr/local/bin/"+img.Name+"=built from a checkout"))
		layers, err := own.OCI.Layers()
		must.NoError(t, err)
		one.OCI = over(t, one.OCI, layers)
		built = append(built, one)
	}
	b, err := NewBuilder(v, built)
	if err == nil {
		err = b.Extend(base)
	}
	must.NoError(t, err)
	return writeOf(t, b)
}

func over(t *testing.T, img v1.Image, layers []v1.Layer) v1.Image {
	t.Helper()
	for _, l := range layers {
		var err error
		if img, err = mutate.Append(img, mutate.Addendum{Layer: l}); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

func TestProgramsOnTopOfABundle(t *testing.T) {
	basePath := writeSmall(t)
	base := opened(t, basePath)
	programs := map[string]string{"kubelet": "v1.36.3+abc", "kube-scheduler": "v1.36.3+def"}
	path := programsOver(t, base, programs)
	must.NoError(t, verified(t.Context(), path, WithBase(basePath)))
	b := opened(t, path, WithBase(basePath))
	if !maps.Equal(b.Manifest.Versions.Programs, programs) {
		t.Errorf("programs %v", b.Manifest.Versions.Programs)
	}
	if err := b.Check(t.Context(), "amd64"); err != nil {
		t.Error(err)
	}
	for _, img := range image.Catalogue(b.Manifest.Versions, "") {
		entry, err := b.Find(img.Ref, "amd64")
		if err != nil {
			t.Error(err)
			continue
		}
		for _, layer := range entry.Platforms["amd64"].Layers {
			var text strings.Builder
			if err := b.copyBlob(&text, layer); err != nil {
				t.Errorf("%s: %v", img.Ref, err)
			}
		}
	}
	if !maps.EqualFunc(b.Manifest.Plugins, base.Manifest.Plugins,
		func(x, y Plugins) bool { return x.Layer == y.Layer }) {
		t.Error("the CNI plugins of the base are not its own")
	}
}

func TestNoProgramsLeaveTheBaseAsItIs(t *testing.T) {
	basePath := writeSmall(t)
	base := opened(t, basePath)
	b := opened(t, programsOver(t, base, nil), WithBase(basePath))
	if err := b.Check(t.Context(), "arm"); err != nil {
		t.Error(err)
	}
	if !slices.EqualFunc(b.Manifest.Images, base.Manifest.Images,
		func(x, y MultiPlatformImage) bool { return x.Ref == y.Ref && x.Index == y.Index }) {
		t.Errorf("images %v, not %v", b.Manifest.Images, base.Manifest.Images)
	}
}
