package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"
)

// IndexPath is where a registry keeps the manifest of a bundle; its tag is the
// version of Kubernetes.
const IndexPath = "kube-bootstrap/bundle"

const (
	indexConfig    = types.MediaType("application/vnd.kube-bootstrap.bundle.config.v1+json")
	indexLayer     = types.MediaType("application/vnd.kube-bootstrap.bundle.v1+json")
	indexSignature = types.MediaType("application/vnd.kube-bootstrap.bundle.signature.v1+json")
)

// inRegistry returns the path and the tag that an image has below the prefix
// of a registry; image.Catalogue names it the same.
func inRegistry(ref string) (path, tag string) {
	_, rest, _ := strings.Cut(ref, "/")
	path, tag, _ = strings.Cut(rest, ":")
	return path, tag
}

func (b *Bundle) text(d digest.Digest) ([]byte, error) {
	if size := b.Blobs[d].Size; size > manifestLimit {
		return nil, fmt.Errorf("blob %s has %d bytes, more than the %d allowed", d, size, manifestLimit)
	}
	var text bytes.Buffer
	err := b.copyBlob(&text, d)
	return text.Bytes(), err
}

// imageIndex is an image as go-containerregistry sees it.
func (b *Bundle) imageIndex(e Entry) (v1.ImageIndex, error) {
	raw, err := b.text(e.Index)
	return bundleIndex{b, raw}, err
}

type bundleIndex struct {
	b   *Bundle
	raw []byte
}

func (i bundleIndex) MediaType() (types.MediaType, error) {
	return mediaType(i.raw, types.OCIImageIndex)
}
func (i bundleIndex) Digest() (v1.Hash, error)     { return partial.Digest(i) }
func (i bundleIndex) Size() (int64, error)         { return int64(len(i.raw)), nil }
func (i bundleIndex) RawManifest() ([]byte, error) { return i.raw, nil }
func (i bundleIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(i.raw))
}
func (i bundleIndex) ImageIndex(h v1.Hash) (v1.ImageIndex, error) {
	return nil, fmt.Errorf("no index %s within", h)
}

func (i bundleIndex) Image(h v1.Hash) (v1.Image, error) {
	raw, err := i.b.text(digest.Digest(h.String()))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(bundleImage{i.b, raw})
}

// mediaType is what a manifest says it is: a registry compares.
func mediaType(raw []byte, otherwise types.MediaType) (types.MediaType, error) {
	var says struct {
		MediaType types.MediaType `json:"mediaType"`
	}
	err := json.Unmarshal(raw, &says)
	return cmp.Or(says.MediaType, otherwise), err
}

type bundleImage struct {
	b   *Bundle
	raw []byte
}

func (i bundleImage) MediaType() (types.MediaType, error) {
	return mediaType(i.raw, types.OCIManifestSchema1)
}
func (i bundleImage) RawManifest() ([]byte, error) { return i.raw, nil }

func (i bundleImage) RawConfigFile() ([]byte, error) {
	m, err := v1.ParseManifest(bytes.NewReader(i.raw))
	if err != nil {
		return nil, err
	}
	return i.b.text(digest.Digest(m.Config.Digest.String()))
}

func (i bundleImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	return &bundleBlob{b: i.b, digest: digest.Digest(h.String())}, nil
}

// bundleBlob is a blob on its way into a registry.
type bundleBlob struct {
	b        *Bundle
	digest   digest.Digest
	progress *progress // may be nil

	mu   sync.Mutex
	done int64 // bytes that were counted
}

func (l *bundleBlob) layer() (v1.Layer, error) { return partial.CompressedToLayer(l) }

func (l *bundleBlob) Digest() (v1.Hash, error)            { return v1.NewHash(l.digest.String()) }
func (l *bundleBlob) Size() (int64, error)                { return l.b.Blobs[l.digest].Size, nil }
func (l *bundleBlob) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// Compressed is the blob as it is: layers of a bundle are plain tars.
func (l *bundleBlob) Compressed() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.b.copyBlob(io.MultiWriter(w, l), l.digest)) }()
	return r, nil
}

// Write counts what is sent, once if it is sent again.
func (l *bundleBlob) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.b.Blobs[l.digest].Size - l.done
	return len(data), l.add(min(int64(len(data)), left))
}

// count takes what the registry had already for done.
func (l *bundleBlob) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.add(l.b.Blobs[l.digest].Size - l.done) // progress never fails
}

func (l *bundleBlob) add(n int64) error {
	l.done += n
	if l.progress != nil {
		l.progress.add(n)
	}
	return nil
}

// artifact holds the manifest of the bundle, and its signature if it has one, as
// layers of an image that is none.
func (b *Bundle) artifact() (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), indexConfig)
	layers := []mutate.Addendum{{Layer: static.NewLayer(b.raw, indexLayer), MediaType: indexLayer}}
	if b.signature != nil {
		layers = append(layers, mutate.Addendum{Layer: static.NewLayer(b.signature, indexSignature), MediaType: indexSignature})
	}
	return mutate.Append(base, layers...)
}
