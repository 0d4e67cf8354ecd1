package artifact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

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

// pushedIndex implements go-containerregistry's index for an image.
type pushedIndex struct {
	push  push
	image registryImage
}

func (i pushedIndex) MediaType() (types.MediaType, error) { return types.OCIImageIndex, nil }
func (i pushedIndex) Digest() (v1.Hash, error)            { return partial.Digest(i) }
func (i pushedIndex) Size() (int64, error)                { return int64(len(i.image.index)), nil }
func (i pushedIndex) RawManifest() ([]byte, error)        { return i.image.index, nil }
func (i pushedIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(i.image.index))
}
func (i pushedIndex) ImageIndex(h v1.Hash) (v1.ImageIndex, error) {
	return nil, fmt.Errorf("no index %s within", h)
}

func (i pushedIndex) Image(h v1.Hash) (v1.Image, error) {
	raw, ok := i.image.manifests[digest.Digest(h.String())]
	if !ok {
		return nil, fmt.Errorf("no image %s within", h)
	}
	return partial.CompressedToImage(pushedImage{i.push, raw})
}

type pushedImage struct {
	push push
	raw  []byte
}

func (i pushedImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (i pushedImage) RawManifest() ([]byte, error)        { return i.raw, nil }

func (i pushedImage) RawConfigFile() ([]byte, error) {
	m, err := v1.ParseManifest(bytes.NewReader(i.raw))
	if err != nil {
		return nil, err
	}
	return i.push.ReadText(digest.Digest(m.Config.Digest.String()))
}

func (i pushedImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	return i.push.layers.byDigest(digest.Digest(h.String()))
}

// artifact returns an OCI artifact whose layers are the manifest of the bundle,
// the description of how it is stored, and its signature, if it has one.
func (p push) artifact(s stored) (v1.Image, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	manifest, signature := p.Members()
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), indexConfig)
	layers := []mutate.Addendum{
		{Layer: static.NewLayer(manifest, indexLayer), MediaType: indexLayer},
		{Layer: static.NewLayer(text, indexStored), MediaType: indexStored},
	}
	if signature != nil {
		layers = append(layers, mutate.Addendum{Layer: static.NewLayer(signature, indexSignature), MediaType: indexSignature})
	}
	return mutate.Append(base, layers...)
}
