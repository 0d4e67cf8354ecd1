package offline

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
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// OpenRegistry opens the bundle of a Kubernetes version that was pushed into a
// registry. What is read of it streams from there.
func OpenRegistry(ctx context.Context, from *registry.Registry, kubernetes string, options ...Option) (*Bundle, error) {
	b, err := readIndex(ctx, from, kubernetes)
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
	shelves := b.shelves()
	b.fetch = func(d digest.Digest) (io.ReadCloser, error) {
		where, ok := shelves[d]
		switch {
		case !ok:
			return nil, errors.New("it belongs to no image")
		case where.manifest:
			return reader.Manifest(ctx, where.path, d, b.Blobs[d].Size), nil
		}
		return reader.Blob(ctx, where.path, d, b.Blobs[d].Size), nil
	}
	return b, nil
}

// shelf is where a registry keeps a blob.
type shelf struct {
	path     string
	manifest bool
}

func (b *Bundle) shelves() map[digest.Digest]shelf {
	shelves := map[digest.Digest]shelf{}
	for _, e := range b.Images {
		path, _ := inRegistry(e.Ref)
		shelves[e.Index] = shelf{path, true}
		for _, v := range e.Variants {
			shelves[v.Manifest] = shelf{path, true}
			for _, d := range append([]digest.Digest{v.Config}, v.Layers...) {
				shelves[d] = shelf{path, false}
			}
		}
	}
	return shelves
}

func readIndex(ctx context.Context, from *registry.Registry, kubernetes string) (*Bundle, error) {
	repo, err := from.Repository(IndexPath)
	if err != nil {
		return nil, err
	}
	options, err := from.Options(ctx)
	if err != nil {
		return nil, err
	}
	artifact, err := remote.Image(repo.Tag(kubernetes), options...)
	if err != nil {
		return nil, err
	}
	layers, err := artifact.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) == 0 || len(layers) > 2 {
		return nil, fmt.Errorf("%s is no bundle of kube-bootstrap", repo.Tag(kubernetes))
	}
	b := &Bundle{Path: repo.Tag(kubernetes).Name(), feed: &Feed{}}
	if b.raw, err = smallLayer(layers[0]); err != nil {
		return nil, err
	}
	if len(layers) == 2 {
		if b.signature, err = smallLayer(layers[1]); err != nil {
			return nil, err
		}
	}
	strict := json.NewDecoder(bytes.NewReader(b.raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&b.Manifest); err != nil {
		return nil, fmt.Errorf("read %s: %w", b.Path, err)
	}
	return b, b.validate(math.MaxInt64)
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
