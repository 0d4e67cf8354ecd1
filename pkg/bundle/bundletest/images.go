// Package bundletest contains what the tests of several packages need to make
// bundles: small images, and a way to manipulate a bundle.
package bundletest

import (
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Versions returns the versions of the newest Kubernetes.
func Versions(t testing.TB) image.Versions {
	t.Helper()
	v, err := image.For("", image.Versions{})
	must.NoError(t, err)
	return v
}

// Image returns an image with uncompressed layers.
func Image(t testing.TB, img image.Image, arch string, layers ...[]byte) image.Built {
	t.Helper()
	p := image.Platform(arch)
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	oci, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, RootFS: v1.RootFS{Type: "layers"},
	})
	must.NoError(t, err)
	for _, l := range layers {
		oci, err = mutate.Append(oci, mutate.Addendum{
			Layer: static.NewLayer(l, types.OCIUncompressedLayer), MediaType: types.OCIUncompressedLayer,
		})
		must.NoError(t, err)
	}
	return image.Built{Image: img, Arch: arch, OCI: oci}
}

// Images returns all images of a cluster. They are tiny, except for a layer of
// hyperkube. Only that layer depends on the version of Kubernetes.
func Images(t testing.TB, v image.Versions, archs ...string) (built []image.Built) {
	t.Helper()
	for _, arch := range archs {
		built = append(built, images(t, v, arch, "")...)
	}
	return built
}

// ImagesApart returns Images of which no two architectures have a layer in common.
func ImagesApart(t testing.TB, v image.Versions, archs ...string) (built []image.Built) {
	t.Helper()
	for _, arch := range archs {
		built = append(built, images(t, v, arch, "# "+arch+"\n")...)
	}
	return built
}

// images appends mark to the shared layers.
func images(t testing.TB, v image.Versions, arch, mark string) (built []image.Built) {
	t.Helper()
	for _, img := range image.Catalogue(v, "") {
		userland := rootfstest.Tar(t, "etc/passwd=root:x:0:0:root:/:/bin/sh\n"+mark)
		if img.Name == "hyperkube" {
			built = append(built, hyperkube(t, v, img, arch, mark, userland))
			continue
		}
		built = append(built, Image(t, img, arch, userland,
			rootfstest.Tar(t, img.Name+"="+strings.Repeat(img.Name+" for "+arch+"\n", 50))))
	}
	return built
}

func hyperkube(t testing.TB, v image.Versions, img image.Image, arch, mark string, userland []byte) image.Built {
	t.Helper()
	const plugin = "#!/bin/sh\necho '{\"supportedVersions\":[\"1.0.0\"]}'\n"
	plugins := rootfstest.Tar(t, "opt/cni/bin/bridge="+plugin+"# ours\n"+mark,
		"opt/cni/bin/portmap="+plugin+"# ours too\n",
		"opt/cni/bin/host-local="+plugin, "opt/cni/bin/loopback="+plugin)
	large := rootfstest.Tar(t,
		img.Name+"="+strings.Repeat(v.Kubernetes+" for "+arch+"\n", image.ManifestLimit/len(v.Kubernetes)))
	built := Image(t, img, arch, userland, plugins, large)
	built.Parts = []cache.Part{{Name: "userland", Dir: t.TempDir()}, {Name: "cni", Version: v.CNI}}
	return built
}
