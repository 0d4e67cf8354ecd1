package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
)

// stored describes how a registry stores the images of a bundle. There, each
// layer is compressed by itself, as all clients that pull images expect.
// Manifests and indexes therefore differ from the bundle's, but configs, and so
// image IDs, are the same.
//
// stored needs no signature: unpacked layers must have the digests in the
// manifest of the bundle.
type stored struct {
	Layers    map[digest.Digest]compressedBlob `json:"layers"`    // by digest of the uncompressed layer
	Indexes   map[string]digest.Digest         `json:"indexes"`   // digest in the registry, by reference
	Manifests map[digest.Digest]string         `json:"manifests"` // manifests of the bundle, by digest
}

// compressedBlob is a compressed layer.
type compressedBlob struct {
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// registryImage is an image as the registry stores it.
type registryImage struct {
	index     []byte
	manifests map[digest.Digest][]byte
}

// rewrite returns an image with its layers as the registry stores them.
func (s stored) rewrite(b *bundle.Bundle, img bundle.MultiPlatformImage) (registryImage, error) {
	rewritten := registryImage{manifests: map[digest.Digest][]byte{}}
	text, err := b.ReadText(img.Index)
	if err != nil {
		return rewritten, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return rewritten, err
	}
	for i := range index.Manifests {
		one := &index.Manifests[i]
		manifest, err := s.manifest(b, one.Digest)
		if err != nil {
			return rewritten, fmt.Errorf("manifest %s: %w", one.Digest, err)
		}
		one.Digest, one.Size = digest.FromBytes(manifest), int64(len(manifest))
		rewritten.manifests[one.Digest] = manifest
	}
	rewritten.index, err = json.Marshal(index)
	return rewritten, err
}

// manifest returns a manifest with compressed layers, and remembers the
// original manifest of the bundle.
func (s stored) manifest(b *bundle.Bundle, d digest.Digest) ([]byte, error) {
	text, err := b.ReadText(d)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	for i := range m.Layers {
		layer, ok := s.Layers[m.Layers[i].Digest]
		if !ok {
			return nil, fmt.Errorf("layer %s was not compressed", m.Layers[i].Digest)
		}
		m.Layers[i].MediaType, m.Layers[i].Digest, m.Layers[i].Size = ocispec.MediaTypeImageLayerZstd,
			layer.Digest, layer.Size
	}
	s.Manifests[d] = string(text)
	return json.Marshal(m)
}

// fetching returns a function that opens the blobs of a bundle in a registry.
func (s stored) fetching(
	m bundle.Manifest, blob func(path string, d digest.Digest, size int64) io.ReadCloser,
) bundle.Fetch {
	paths := pathsOf(m.Images)
	return func(d digest.Digest) (io.ReadCloser, error) {
		if text, ok := s.Manifests[d]; ok {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		path, ok := paths[d]
		if !ok {
			return nil, errors.New("it belongs to no image")
		}
		if layer, ok := s.Layers[d]; ok {
			return plainLayer(blob(path, layer.Digest, layer.Size), m.Blobs[d].Size)
		}
		return blob(path, d, m.Blobs[d].Size), nil
	}
}

// pathsOf returns the repository of each config and layer.
func pathsOf(images []bundle.MultiPlatformImage) map[digest.Digest]string {
	paths := map[digest.Digest]string{}
	for _, img := range images {
		path, _ := inRegistry(img.Ref)
		for _, platform := range img.Platforms {
			for _, d := range append([]digest.Digest{platform.Config}, platform.Layers...) {
				paths[d] = path
			}
		}
	}
	return paths
}

// plainLayer decompresses a layer and reads at most size bytes of it. The caller
// verifies the digest.
func plainLayer(layer io.ReadCloser, size int64) (io.ReadCloser, error) {
	decoder, err := compression.NewDecoder(layer, 1)
	if err != nil {
		layer.Close()
		return nil, err
	}
	return &layerDecoder{io.LimitReader(decoder, size), decoder, layer}, nil
}

type layerDecoder struct {
	io.Reader
	decoder *zstd.Decoder
	layer   io.Closer
}

func (l *layerDecoder) Close() error {
	l.decoder.Close()
	return l.layer.Close()
}

func parseStored(text []byte) (s stored, err error) {
	if err := bundle.DecodeStrict(text, &s); err != nil {
		return s, fmt.Errorf("how it is stored: %w", err)
	}
	for d, layer := range s.Layers {
		err := errors.Join(d.Validate(), layer.Digest.Validate())
		if layer.Size < 0 || layer.Size > bundle.BlobLimit {
			err = errors.Join(err, fmt.Errorf("%d bytes", layer.Size))
		}
		if err != nil {
			return s, fmt.Errorf("how it is stored: layer %s: %w", d, err)
		}
	}
	return s, nil
}

// IndexPath is where a registry keeps the manifest of a bundle; its tag is the
// version of Kubernetes.
const IndexPath = "kube-bootstrap/bundle"

const (
	indexConfig    = types.MediaType("application/vnd.kube-bootstrap.bundle.config.v1+json")
	indexLayer     = types.MediaType("application/vnd.kube-bootstrap.bundle.v1+json")
	indexStored    = types.MediaType("application/vnd.kube-bootstrap.bundle.stored.v1+json")
	indexSignature = types.MediaType("application/vnd.kube-bootstrap.bundle.signature.v1+json")
)

// inRegistry returns the path and the tag that an image has below the prefix
// of a registry; image.Catalogue names it the same.
func inRegistry(ref string) (path, tag string) {
	_, rest, _ := strings.Cut(ref, "/")
	path, tag, _ = strings.Cut(rest, ":")
	return path, tag
}

// rawManifest is a manifest or an index whose parts are in the registry already.
type rawManifest struct {
	mediaType types.MediaType
	raw       []byte
}

func (m rawManifest) MediaType() (types.MediaType, error) { return m.mediaType, nil }
func (m rawManifest) RawManifest() ([]byte, error)        { return m.raw, nil }

// artifact returns an OCI artifact whose layers are the manifest of the bundle,
// the description of how it is stored, and its signature, if it has one.
func (p push) artifact(s stored) (v1.Image, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	manifest, signature := p.from.Members()
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), indexConfig)
	layers := []mutate.Addendum{
		{Layer: static.NewLayer(manifest, indexLayer), MediaType: indexLayer},
		{Layer: static.NewLayer(text, indexStored), MediaType: indexStored},
	}
	if signature != nil {
		layers = append(layers, mutate.Addendum{
			Layer: static.NewLayer(signature, indexSignature), MediaType: indexSignature,
		})
	}
	return mutate.Append(base, layers...)
}
