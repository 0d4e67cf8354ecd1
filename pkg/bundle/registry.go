package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// OpenRegistry opens the bundle of a Kubernetes version that was pushed into a
// registry. Blobs are read from the registry when they are needed.
func OpenRegistry(ctx context.Context, from *registry.Registry, kubernetes string, options ...Option) (*Bundle, error) {
	b, how, err := readIndex(ctx, from, kubernetes)
	if err != nil {
		return nil, fmt.Errorf("the bundle of Kubernetes %s in registry %s: %w", kubernetes, from.Address, from.Explain(err))
	}
	for _, option := range options {
		if err := option(b); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.Path, err)
		}
	}
	reader, err := from.Reader()
	if err != nil {
		return nil, err
	}
	b.fetch = how.fetching(b, func(path string, d digest.Digest, size int64) io.ReadCloser {
		return reader.Blob(ctx, path, d, size)
	})
	return b, nil
}

// readIndex reads the bundle's manifest and how the bundle is stored in the
// registry.
func readIndex(ctx context.Context, from *registry.Registry, kubernetes string) (*Bundle, stored, error) {
	repo, err := from.Repository(IndexPath)
	if err != nil {
		return nil, stored{}, err
	}
	options, err := from.Options(ctx)
	if err != nil {
		return nil, stored{}, err
	}
	artifact, err := remote.Image(repo.Tag(kubernetes), options...)
	if err != nil {
		return nil, stored{}, err
	}
	texts, err := smallLayers(artifact)
	if err != nil {
		return nil, stored{}, err
	}
	if texts[indexLayer] == nil || texts[indexStored] == nil {
		return nil, stored{}, fmt.Errorf("%s is no bundle of this kube-bootstrap; push it again", repo.Tag(kubernetes))
	}
	b := &Bundle{Path: repo.Tag(kubernetes).Name(), broadcast: &Broadcast{}, raw: texts[indexLayer], signature: texts[indexSignature]}
	strict := json.NewDecoder(bytes.NewReader(b.raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&b.Manifest); err != nil {
		return nil, stored{}, fmt.Errorf("read %s: %w", b.Path, err)
	}
	s, err := parseStored(texts[indexStored])
	return b, s, errors.Join(err, b.validate(math.MaxInt64))
}

// smallLayers returns the layers of an artifact by media type.
func smallLayers(artifact v1.Image) (map[types.MediaType][]byte, error) {
	layers, err := artifact.Layers()
	if err != nil {
		return nil, err
	}
	texts := map[types.MediaType][]byte{}
	for _, layer := range layers[:min(len(layers), 3)] {
		kind, err := layer.MediaType()
		if err != nil {
			return nil, err
		}
		if texts[kind], err = smallLayer(layer); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func smallLayer(layer v1.Layer) ([]byte, error) {
	size, err := layer.Size()
	if err != nil {
		return nil, err
	}
	if size > manifestLimit {
		return nil, fmt.Errorf("it has %d bytes, more than the %d allowed", size, manifestLimit)
	}
	text, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	return io.ReadAll(text)
}
