package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/compression"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
)

// Builder collects the contents of a bundle and writes it.
type Builder struct {
	Cache string // directory of compressed frames, shared by all bundles; empty: none

	manifest    Manifest
	index       ocispec.Index
	blobs       []blobSource            // of the first frame
	layers      map[string][]blobSource // of the frame of each architecture
	have        map[digest.Digest]bool  // blobs and layers
	signer      ed25519.PrivateKey      // nil: not signed
	compression compression.Method      // of the layers
}

// NewBuilder returns a builder for a bundle of images.
func NewBuilder(v image.Versions, built []image.Built) (*Builder, error) {
	b := &Builder{Cache: cache.Dir(), have: map[digest.Digest]bool{}, layers: map[string][]blobSource{},
		compression: compression.Fast,
		manifest:    Manifest{Format: formatVersion, Versions: v, Plugins: map[string]Plugins{}}}
	b.index.SchemaVersion, b.index.MediaType = 2, ocispec.MediaTypeImageIndex
	for _, platforms := range byRef(built) {
		added, err := b.add(platforms)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", platforms[0].Ref, err)
		}
		b.manifest.Images = append(b.manifest.Images, added)
	}
	b.manifest.Blobs = map[digest.Digest]Blob{}
	images, err := json.Marshal(b.manifest.Images)
	b.addToKey(fmt.Sprint(recipeVersion, v), string(images))
	return b, err
}

// addToKey must be called for each input that changes the file.
func (b *Builder) addToKey(inputs ...string) {
	b.manifest.Key = digest.FromString(b.manifest.Key + " " + strings.Join(inputs, " ")).Encoded()[:16]
}

// ExcludeBase omits the blobs that another bundle contains.
func (b *Builder) ExcludeBase(base *Bundle) error {
	if base.Manifest.Base != nil {
		return fmt.Errorf("%s cannot be a base, because it has a base itself; name that bundle", base.Path)
	}
	b.manifest.Base = &Base{Kubernetes: base.Manifest.Versions.Kubernetes, Manifest: base.Identity()}
	b.addToKey(b.manifest.Base.Manifest.String())
	inBase := func(blob blobSource) bool {
		_, ok := base.Manifest.Blobs[blob.digest]
		if ok {
			b.manifest.Blobs[blob.digest] = Blob{Size: blob.size, InBase: true}
		}
		return ok
	}
	b.blobs = slices.DeleteFunc(b.blobs, inBase)
	for arch, layers := range b.layers {
		b.layers[arch] = slices.DeleteFunc(layers, inBase)
	}
	return nil
}

// SignBy signs the bundle with a key. A nil key does not sign it.
func (b *Builder) SignBy(key ed25519.PrivateKey) {
	if key != nil {
		b.signer = key
		b.addToKey(fingerprint(key.Public().(ed25519.PublicKey)))
	}
}

// CompressUltra compresses as much as possible, in minutes instead of seconds.
func (b *Builder) CompressUltra(ctx context.Context) { b.compression = compression.Ultra(ctx) }

// Wrote reports whether the file at path is a bundle of the same contents. With anyCompression, it may be compressed
// differently.
func (b *Builder) Wrote(path string, anyCompression bool) bool {
	old, err := Open(path)
	if err != nil {
		return false
	}
	defer old.Close()
	return old.Manifest.Key == b.manifest.Key && (anyCompression || old.Manifest.Compression == b.compression.Name)
}

// byRef groups the images by reference: each group is for all architectures.
func byRef(built []image.Built) [][]image.Built {
	var groups [][]image.Built
	for _, one := range built {
		i := slices.IndexFunc(groups, func(g []image.Built) bool { return g[0].Ref == one.Ref })
		if i < 0 {
			groups, i = append(groups, nil), len(groups)
		}
		groups[i] = append(groups[i], one)
	}
	return groups
}

// newBlobs returns the blobs that are not in the bundle yet, and marks them.
func (b *Builder) newBlobs(blobs ...blobSource) (added []blobSource) {
	for _, blob := range blobs {
		if !b.have[blob.digest] {
			b.have[blob.digest] = true
			added = append(added, blob)
		}
	}
	return added
}

// addBlobs adds blobs to the first frame.
func (b *Builder) addBlobs(blobs ...blobSource) { b.blobs = append(b.blobs, b.newBlobs(blobs...)...) }

// add adds an image for all architectures.
func (b *Builder) add(platforms []image.Built) (MultiPlatformImage, error) {
	added := MultiPlatformImage{Image: platforms[0].Image, Platforms: map[string]PlatformImage{}}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, built := range platforms {
		one, err := b.addPlatform(built)
		if err != nil {
			return added, err
		}
		added.Platforms[built.Arch] = one
		platform := image.Platform(built.Arch)
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: built.OCI, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	raw, err := index.RawManifest()
	if err != nil {
		return added, err
	}
	blob := bytesSource(raw)
	b.addBlobs(blob)
	added.Index = blob.digest
	b.index.Manifests = append(b.index.Manifests, added.descriptor(ocispec.MediaTypeImageIndex, blob.digest, blob.size))
	return added, nil
}

// descriptor returns an element of index.json, by which other tools find the image.
func (i MultiPlatformImage) descriptor(mediaType string, d digest.Digest, size int64) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: size,
		Annotations: map[string]string{ocispec.AnnotationRefName: i.Ref, annotationName: i.Ref}}
}

func (b *Builder) addPlatform(built image.Built) (PlatformImage, error) {
	added := PlatformImage{Parts: built.Parts}
	manifest, err := built.OCI.RawManifest()
	if err != nil {
		return added, err
	}
	config, err := built.OCI.RawConfigFile()
	if err != nil {
		return added, err
	}
	b.addBlobs(bytesSource(manifest), bytesSource(config))
	added.Manifest, added.Config = digest.FromBytes(manifest), digest.FromBytes(config)
	all, err := built.OCI.Layers()
	if err != nil {
		return added, err
	}
	var layers []blobSource
	for _, l := range all {
		layer, err := layerSource(l)
		if err != nil {
			return added, err
		}
		layers = append(layers, layer)
		added.Layers = append(added.Layers, layer.digest)
	}
	b.layers[built.Arch] = append(b.layers[built.Arch], b.newBlobs(layers...)...)
	return added, b.recordPlugins(built, layers)
}

// recordPlugins records which layer contains the CNI plugins.
func (b *Builder) recordPlugins(built image.Built, layers []blobSource) error {
	for i, part := range built.Parts {
		if part.Name != "cni" || i >= len(layers) {
			continue
		}
		files, err := pluginFiles(layers[i])
		if err != nil {
			return err
		}
		b.manifest.Plugins[built.Arch] = Plugins{Layer: layers[i].digest, Files: files}
	}
	return nil
}

func pluginFiles(layer blobSource) (map[string]digest.Digest, error) {
	data, err := layer.open()
	if err != nil {
		return nil, err
	}
	defer data.Close()
	files := map[string]digest.Digest{}
	err = rootfs.EachEntry(data, func(name string, h *tar.Header, content io.Reader) (err error) {
		if h.Typeflag == tar.TypeReg && strings.HasPrefix("/"+name, image.CNIDir+"/") {
			files[path.Base(name)], err = digest.FromReader(content)
		}
		return err
	})
	return files, err
}

func bytesSource(data []byte) blobSource {
	return blobSource{digest.FromBytes(data), int64(len(data)),
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func layerSource(l v1.Layer) (blobSource, error) {
	hash, hashErr := l.Digest()
	size, sizeErr := l.Size()
	return blobSource{digest.Digest(hash.String()), size, l.Compressed}, cmp.Or(hashErr, sizeErr)
}

// Extend makes a bundle that adds images to another one: it contains all images of the base and omits the blobs of the
// base. The frames are not cached, as they are small and differ after each change of the source code.
func (b *Builder) Extend(base *Bundle) error {
	b.Cache = ""
	if err := b.ExcludeBase(base); err != nil {
		return err
	}
	b.manifest.Images = append(slices.Clone(base.Manifest.Images), b.manifest.Images...)
	maps.Copy(b.manifest.Plugins, base.Manifest.Plugins)
	for d, blob := range base.Manifest.Blobs {
		b.manifest.Blobs[d] = Blob{Size: blob.Size, InBase: true}
	}
	var all []ocispec.Descriptor
	for _, i := range base.Manifest.Images {
		all = append(all, i.descriptor(ocispec.MediaTypeImageIndex, i.Index, base.Manifest.Blobs[i.Index].Size))
	}
	b.index.Manifests = append(all, b.index.Manifests...)
	return nil
}

// Layers returns the layers of an image, as the lower layers of new images in a bundle that extends this one. Their
// contents cannot be read.
func (b *Bundle) Layers(ref, arch string) (all []v1.Layer, err error) {
	found, err := b.Find(ref, arch)
	for _, d := range found.Platforms[arch].Layers {
		all = append(all, baseLayer{d, b.Manifest.Blobs[d].Size})
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
