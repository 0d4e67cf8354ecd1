// Package artifact stores bundles in registries: each image in a repository of
// its own, with compressed layers, and an OCI artifact that contains the
// manifest of the bundle.
package artifact

import (
	"context"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// Open opens the bundle of a Kubernetes version that was pushed into a
// registry. Blobs are read from the registry when they are needed.
func Open(
	ctx context.Context, from *registry.Registry, kubernetes string, options ...bundle.Option,
) (*bundle.Bundle, error) {
	found, err := readIndex(ctx, from, kubernetes)
	var b *bundle.Bundle
	if err == nil {
		b, err = found.open(ctx, from)
	}
	if err != nil {
		return nil, fmt.Errorf("the bundle of Kubernetes %s in registry %s: %w", kubernetes, from.Address,
			from.Explain(err))
	}
	for _, option := range options {
		if err := option(b); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.Path, err)
		}
	}
	return b, nil
}

// index is what a registry has at IndexPath.
type index struct {
	path                string
	manifest, signature []byte // of the bundle, as they are written
	stored              stored
}

// open returns the bundle, which reads blobs from the registry.
func (i index) open(ctx context.Context, from *registry.Registry) (*bundle.Bundle, error) {
	reader, err := from.Reader()
	if err != nil {
		return nil, err
	}
	return bundle.Remote(i.path, i.manifest, i.signature, func(m bundle.Manifest) bundle.Fetch {
		return i.stored.fetching(m, func(path string, d digest.Digest, size int64) io.ReadCloser {
			return reader.Blob(ctx, path, d, size)
		})
	})
}

func readIndex(ctx context.Context, from *registry.Registry, kubernetes string) (index, error) {
	repo, err := from.Repository(IndexPath)
	if err != nil {
		return index{}, err
	}
	options, err := from.Options(ctx)
	if err != nil {
		return index{}, err
	}
	tag := repo.Tag(kubernetes)
	img, err := remote.Image(tag, options...)
	if err != nil {
		return index{}, err
	}
	texts, err := smallLayers(img)
	if err != nil {
		return index{}, err
	}
	if texts[indexLayer] == nil || texts[indexStored] == nil {
		return index{}, fmt.Errorf("%s is no bundle of this kube-bootstrap; push it again", tag)
	}
	s, err := parseStored(texts[indexStored])
	return index{tag.Name(), texts[indexLayer], texts[indexSignature], s}, err
}

// smallLayers returns the layers of an artifact by media type.
func smallLayers(img v1.Image) (map[types.MediaType][]byte, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	texts := map[types.MediaType][]byte{}
	for _, layer := range manifest.Layers[:min(len(manifest.Layers), 3)] {
		if texts[layer.MediaType], err = smallLayer(img, layer); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func smallLayer(img v1.Image, described v1.Descriptor) ([]byte, error) {
	layer, err := img.LayerByDigest(described.Digest)
	if err != nil {
		return nil, err
	}
	text, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	// The manifest of the artifact can state several sizes for the same digest.
	data, err := io.ReadAll(io.LimitReader(text, bundle.ManifestLimit+1))
	if err == nil && len(data) > bundle.ManifestLimit {
		err = fmt.Errorf("%s has more than the %d bytes allowed", described.MediaType, bundle.ManifestLimit)
	}
	return data, err
}
