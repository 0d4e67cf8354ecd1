package fetch

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestChoose(t *testing.T) {
	at := name.MustParseReference("registry.k8s.io/etcd:3.6.8-0")
	var all []v1.Descriptor
	for i, p := range []v1.Platform{{OS: "linux", Architecture: "arm", Variant: "v6"},
		{OS: "linux", Architecture: "arm", Variant: "v7"},
		{OS: "windows", Architecture: "amd64"}, {OS: "linux", Architecture: "amd64"},
		{OS: "linux", Architecture: "arm64", Variant: "v8"}} {
		all = append(all, v1.Descriptor{
			Platform: &p, Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0123456789"[i:i+1], 64)},
		})
	}
	for want, p := range map[string]v1.Platform{
		"1": {OS: "linux", Architecture: "arm", Variant: "v7"}, "3": {OS: "linux", Architecture: "amd64"},
		"4": {OS: "linux", Architecture: "arm64"},
	} {
		if got, err := choose(all, at, p); err != nil || got.Hex[:1] != want {
			t.Errorf("%s: chose %s, not %s (%v)", p, got.Hex[:1], want, err)
		}
	}
	_, err := choose(all, at, v1.Platform{OS: "linux", Architecture: "ppc64le"})
	problem(t, err, "no-platform",
		"registry.k8s.io/etcd:3.6.8-0 does not exist for ppc64le, only for arm, amd64, arm64; build it from source: "+
			"`kube-bootstrap offline build --arch ppc64le`")
}

// sizes is an image whose manifest states sizes.
type sizes struct {
	v1.Image
	config, layer int64
}

func (s sizes) Manifest() (*v1.Manifest, error) {
	return &v1.Manifest{Config: v1.Descriptor{Size: s.config}, Layers: []v1.Descriptor{{Size: s.layer}}}, nil
}

// TestSizesInAManifest: the config is read into memory, and a layer is written to the disk, before
// its digest can be compared.
func TestSizesInAManifest(t *testing.T) {
	at := name.MustParseReference("registry.k8s.io/etcd:3.6.8-0")
	for s, wrong := range map[sizes]bool{
		{config: 4 << 10, layer: 1 << 30}: false, {config: -1}: true, {config: 1 << 40}: true, {layer: -1}: true,
		{layer: 1 << 40}: true,
	} {
		if _, err := manifestOf(at, s); (err != nil) != wrong {
			t.Errorf("config of %d bytes, layer of %d: %v", s.config, s.layer, err)
		}
	}
}
