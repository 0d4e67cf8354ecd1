package offline

import (
	"archive/tar"
	"bytes"
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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// contents is what goes into a bundle, in order.
type contents struct {
	manifest Manifest
	index    ocispec.Index
	blobs    []source            // those of the first frame
	layers   map[string][]source // those of each architecture's frame
	have     map[digest.Digest]bool
	signer   ed25519.PrivateKey // nil: not signed
	packing  packing            // of the layers
	cache    string             // where compressed layers are kept; "": nowhere
}

// collect arranges built images: the small blobs first, then layers by
// architecture.
func collect(v image.Versions, built []image.Built) (*contents, error) {
	c := &contents{have: map[digest.Digest]bool{}, layers: map[string][]source{}, packing: quick, cache: image.CacheDir(), manifest: Manifest{Format: formatVersion, Versions: v, Plugins: map[string]Plugins{}}}
	c.index.SchemaVersion, c.index.MediaType = 2, ocispec.MediaTypeImageIndex
	for _, group := range byRef(built) {
		entry, err := c.add(group)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", group[0].Ref, err)
		}
		c.manifest.Images = append(c.manifest.Images, entry)
	}
	c.manifest.Blobs = map[digest.Digest]Blob{}
	images, err := json.Marshal(c.manifest.Images)
	c.key(fmt.Sprint(recipe, v), string(images))
	return c, err
}

// key notes what decides how the bundle comes out.
func (c *contents) key(inputs ...string) {
	c.manifest.Key = digest.FromString(c.manifest.Key + " " + strings.Join(inputs, " ")).Encoded()[:16]
}

// leaveOut leaves out what another bundle has.
func (c *contents) leaveOut(base *Bundle) error {
	if base.Base != nil {
		return fmt.Errorf("%s can not be a base, as it has one itself; name that one", base.Path)
	}
	c.manifest.Base = &Base{Kubernetes: base.Versions.Kubernetes, Manifest: base.identity()}
	c.key(c.manifest.Base.Manifest.String())
	inBase := func(b source) bool {
		_, there := base.Blobs[b.digest]
		if there {
			c.manifest.Blobs[b.digest] = Blob{Size: b.size, InBase: true}
		}
		return there
	}
	c.blobs = slices.DeleteFunc(c.blobs, inBase)
	for arch, layers := range c.layers {
		c.layers[arch] = slices.DeleteFunc(layers, inBase)
	}
	return nil
}

// signBy lets the bundle be signed by a key; nil leaves it as it is.
func (c *contents) signBy(key ed25519.PrivateKey) {
	if key != nil {
		c.signer = key
		c.key(fingerprint(key.Public().(ed25519.PublicKey)))
	}
}

func byRef(built []image.Built) [][]image.Built {
	var groups [][]image.Built
	for _, b := range built {
		i := slices.IndexFunc(groups, func(g []image.Built) bool { return g[0].Ref == b.Ref })
		if i < 0 {
			groups, i = append(groups, nil), len(groups)
		}
		groups[i] = append(groups[i], b)
	}
	return groups
}

// lacking are those that were not there yet.
func (c *contents) lacking(blobs ...source) (rest []source) {
	for _, b := range blobs {
		if !c.have[b.digest] {
			c.have[b.digest] = true
			rest = append(rest, b)
		}
	}
	return rest
}

func (c *contents) append(blobs ...source) { c.blobs = append(c.blobs, c.lacking(blobs...)...) }

// add notes one image with its variants.
func (c *contents) add(variants []image.Built) (Entry, error) {
	entry := Entry{Image: variants[0].Image, Variants: map[string]Variant{}}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range variants {
		variant, err := c.addVariant(b)
		if err != nil {
			return entry, err
		}
		entry.Variants[b.Arch] = variant
		platform := image.Platform(b.Arch)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: b.OCI, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	raw, err := index.RawManifest()
	if err != nil {
		return entry, err
	}
	blob := bytesSource(raw)
	c.append(blob)
	entry.Index = blob.digest
	c.index.Manifests = append(c.index.Manifests, entry.descriptor(blob.size))
	return entry, nil
}

func (c *contents) addVariant(b image.Built) (Variant, error) {
	variant := Variant{Parts: b.Parts}
	manifest, err := b.OCI.RawManifest()
	if err != nil {
		return variant, err
	}
	config, err := b.OCI.RawConfigFile()
	if err != nil {
		return variant, err
	}
	small := []source{bytesSource(manifest), bytesSource(config)}
	c.append(small...)
	variant.Manifest, variant.Config = small[0].digest, small[1].digest
	all, err := b.OCI.Layers()
	if err != nil {
		return variant, err
	}
	var layers []source
	for _, l := range all {
		layer, err := layerSource(l)
		if err != nil {
			return variant, err
		}
		layers = append(layers, layer)
		variant.Layers = append(variant.Layers, layer.digest)
	}
	c.layers[b.Arch] = append(c.layers[b.Arch], c.lacking(layers...)...)
	return variant, c.notePlugins(b, layers)
}

// notePlugins remembers which layer holds the CNI plugins.
func (c *contents) notePlugins(b image.Built, layers []source) error {
	for i, part := range b.Parts {
		if part.Name != "cni" || i >= len(layers) {
			continue
		}
		files, err := pluginFiles(layers[i])
		if err != nil {
			return err
		}
		c.manifest.Plugins[b.Arch] = Plugins{Layer: layers[i].digest, Files: files}
	}
	return nil
}

func pluginFiles(layer source) (map[string]digest.Digest, error) {
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

func bytesSource(data []byte) source {
	return source{digest.FromBytes(data), int64(len(data)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func layerSource(l v1.Layer) (source, error) {
	hash, err := l.Digest()
	if err != nil {
		return source{}, err
	}
	size, err := l.Size()
	return source{digest.Digest(hash.String()), size, l.Compressed}, err
}
