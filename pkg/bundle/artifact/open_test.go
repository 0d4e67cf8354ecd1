package artifact

import (
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
)

// endless is an artifact of a malicious registry. go-containerregistry takes the size of a layer from
// the first descriptor with its digest, which can be that of the config.
type endless struct {
	v1.Image
	v1.Layer
	sent int
}

func (e *endless) Manifest() (*v1.Manifest, error) {
	return &v1.Manifest{Config: v1.Descriptor{Size: 1 << 50},
		Layers: []v1.Descriptor{{MediaType: indexLayer, Size: 10}}}, nil
}

func (e *endless) LayerByDigest(v1.Hash) (v1.Layer, error) { return e, nil }
func (e *endless) Compressed() (io.ReadCloser, error)      { return io.NopCloser(e), nil }
func (e *endless) MediaType() (types.MediaType, error)     { return indexLayer, nil }
func (e *endless) Digest() (h v1.Hash, err error)          { return h, nil }
func (e *endless) Size() (int64, error)                    { return 10, nil }

func (e *endless) Read(p []byte) (int, error) {
	if e.sent > 8*bundle.ManifestLimit {
		return 0, io.EOF
	}
	e.sent += len(p)
	return len(p), nil
}

// TestAnEndlessIndexIsRefused: it would fill the memory of a host.
func TestAnEndlessIndexIsRefused(t *testing.T) {
	e := &endless{}
	if _, err := smallLayers(e); err == nil || !strings.Contains(err.Error(), "more than the") ||
		e.sent > 3*bundle.ManifestLimit {
		t.Errorf("%d bytes were read: %v", e.sent, err)
	}
}
