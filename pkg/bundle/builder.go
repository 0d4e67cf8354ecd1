package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	b := &Builder{Cache: cache.Dir(), have: map[digest.Digest]bool{}, layers: map[string][]blobSource{}, compression: compression.Fast,
		manifest: Manifest{Format: formatVersion, Versions: v, Plugins: map[string]Plugins{}}}
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

// addToKey changes the key of the bundle. It must be called for each input that
// changes the file.
func (b *Builder) addToKey(inputs ...string) {
	b.manifest.Key = digest.FromString(b.manifest.Key + " " + strings.Join(inputs, " ")).Encoded()[:16]
}

// ExcludeBase omits the blobs that another bundle contains.
func (b *Builder) ExcludeBase(base *Bundle) error {
	if base.Base != nil {
		return fmt.Errorf("%s cannot be a base, because it has a base itself; name that bundle", base.Path)
	}
	b.manifest.Base = &Base{Kubernetes: base.Versions.Kubernetes, Manifest: base.identity()}
	b.addToKey(b.manifest.Base.Manifest.String())
	inBase := func(blob blobSource) bool {
		_, ok := base.Blobs[blob.digest]
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

// CompressUltra compresses the layers as much as possible, which takes minutes.
// The default takes seconds.
func (b *Builder) CompressUltra(ctx context.Context) { b.compression = compression.Ultra(ctx) }

// Wrote reports whether the file at path is a bundle of the same contents. With
// anyCompression, it may be compressed differently.
func (b *Builder) Wrote(path string, anyCompression bool) bool {
	old, err := Open(path)
	if err != nil {
		return false
	}
	defer old.Close()
	return old.Key == b.manifest.Key && (anyCompression || old.Compression == b.compression.Name)
}

// byRef groups the images by reference: each group contains an image for all
// architectures.
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
func (b *Builder) add(platforms []image.Built) (Image, error) {
	added := Image{Image: platforms[0].Image, Platforms: map[string]PlatformImage{}}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, built := range platforms {
		one, err := b.addPlatform(built)
		if err != nil {
			return added, err
		}
		added.Platforms[built.Arch] = one
		platform := image.Platform(built.Arch)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built.OCI, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	raw, err := index.RawManifest()
	if err != nil {
		return added, err
	}
	blob := bytesSource(raw)
	b.addBlobs(blob)
	added.Index = blob.digest
	b.index.Manifests = append(b.index.Manifests, added.descriptor(blob.size))
	return added, nil
}

// descriptor returns the element of index.json by which other tools find the
// image.
func (i Image) descriptor(size int64) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: i.Index, Size: size,
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
	small := []blobSource{bytesSource(manifest), bytesSource(config)}
	b.addBlobs(small...)
	added.Manifest, added.Config = small[0].digest, small[1].digest
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
	archive := tar.NewReader(data)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || !strings.HasPrefix("/"+h.Name, image.CNIDir+"/") {
			continue
		}
		if files[path.Base(h.Name)], err = digest.FromReader(archive); err != nil {
			return nil, err
		}
	}
}

func bytesSource(data []byte) blobSource {
	return blobSource{digest.FromBytes(data), int64(len(data)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func layerSource(l v1.Layer) (blobSource, error) {
	hash, err := l.Digest()
	if err != nil {
		return blobSource{}, err
	}
	size, err := l.Size()
	return blobSource{digest.Digest(hash.String()), size, l.Compressed}, err
}
