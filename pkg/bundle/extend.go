package bundle

import (
	"errors"
	"io"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"
)

// Extend makes a bundle that adds images to another one: it contains all images
// of the base and omits the blobs of the base. The frames are not cached, as they
// are small and differ after each change of the source code.
func (b *Builder) Extend(base *Bundle) error {
	b.Cache = ""
	if err := b.ExcludeBase(base); err != nil {
		return err
	}
	b.manifest.Images = append(slices.Clone(base.Images), b.manifest.Images...)
	maps.Copy(b.manifest.Plugins, base.Plugins)
	for d, blob := range base.Blobs {
		b.manifest.Blobs[d] = Blob{Size: blob.Size, InBase: true}
	}
	own := b.index.Manifests
	b.index.Manifests = nil
	for _, i := range base.Images {
		b.index.Manifests = append(b.index.Manifests, i.descriptor(base.Blobs[i.Index].Size))
	}
	b.index.Manifests = append(b.index.Manifests, own...)
	return nil
}

// Layers returns the layers of an image, as the lower layers of new images in a
// bundle that extends this one. Their contents cannot be read.
func (b *Bundle) Layers(ref, arch string) (all []v1.Layer, err error) {
	found, err := b.Find(ref, arch)
	for _, d := range found.Platforms[arch].Layers {
		all = append(all, baseLayer{d, b.Blobs[d].Size})
	}
	return all, err
}

// baseLayer is a layer that is never written, as the base contains it.
type baseLayer struct {
	digest digest.Digest
	size   int64
}

var errInBase = errors.New("this layer is only in the base")

func (l baseLayer) Digest() (v1.Hash, error)             { return v1.NewHash(l.digest.String()) }
func (l baseLayer) DiffID() (v1.Hash, error)             { return l.Digest() }
func (l baseLayer) Compressed() (io.ReadCloser, error)   { return nil, errInBase }
func (l baseLayer) Uncompressed() (io.ReadCloser, error) { return nil, errInBase }
func (l baseLayer) Size() (int64, error)                 { return l.size, nil }
func (l baseLayer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
