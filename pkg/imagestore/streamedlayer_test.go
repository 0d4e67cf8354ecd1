package imagestore

import (
	"testing"

	digest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
)

// TestLayerBelowOthers: a layer that images have above different layers is not
// unpacked while it is read, as one of its snapshots would lack the other.
func TestLayerBelowOthers(t *testing.T) {
	a, b := digest.FromString("a"), digest.FromString("b")
	s := newLayerStream(nil, newUnpackedDirs())
	s.learn([]byte(`{"rootfs":{"diff_ids":["` + a.String() + `","` + b.String() + `"]}}`))
	s.learn([]byte(`{"rootfs":{"diff_ids":["` + a.String() + `","` + b.String() + `"]}}`))
	s.learn([]byte(`no config`))
	if s.ambiguous[a] || s.ambiguous[b] || identity.ChainID(s.below[b]) != a {
		t.Errorf("%+v", s)
	}
	s.learn([]byte(`{"rootfs":{"diff_ids":["` + b.String() + `"]}}`))
	if !s.ambiguous[b] || s.writer(t.Context(), blobPrefix+b.Encoded()) != nil {
		t.Errorf("%+v", s)
	}
}
