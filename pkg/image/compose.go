package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Fetched is an origin that was downloaded.
type Fetched struct {
	Origin
	Digest digest.Digest
	Paths  []string // the file, or the image's config and compressed layers
}

func (f Fetched) part(version string) cache.Part {
	return cache.Part{Name: f.Name, Version: version, Origin: f.Where() + "@" + f.Digest.String(), How: "pulled", Key: f.key()}
}

func (f Fetched) key() string { return f.Digest.Encoded()[:16] }

// Compose assembles an image of the catalogue from official images and files.
// It is equivalent to the image that Build builds from source.
func (b *Builder) Compose(ctx context.Context, v Versions, img Image, arch string, origins map[string]Fetched) (Built, error) {
	step.Report(ctx, "unpack "+img.Ref+" for "+arch, 0, 0)
	if img.Name == "hyperkube" {
		return b.composeHyperkube(ctx, v, img, arch, origins)
	}
	return b.asItIs(ctx, img, arch, origins[img.Name])
}

// asItIs keeps an image and the bytes of its config. It only decompresses the
// layers, as bundles require.
func (b *Builder) asItIs(ctx context.Context, img Image, arch string, from Fetched) (Built, error) {
	built := Built{Image: img, Arch: arch, Parts: []cache.Part{from.part(path.Base(from.Ref))}}
	config, err := os.ReadFile(from.Paths[0])
	if err != nil {
		return built, err
	}
	var parsed v1.ConfigFile
	if err := json.Unmarshal(config, &parsed); err != nil {
		return built, fmt.Errorf("config of %s: %w", from.Ref, err)
	}
	if len(parsed.RootFS.DiffIDs) != len(from.Paths)-1 {
		return built, fmt.Errorf("%s has %d layers, but its config names %d", from.Ref, len(from.Paths)-1, len(parsed.RootFS.DiffIDs))
	}
	same := unchanged{config: config, layers: map[v1.Hash]v1.Layer{}}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: HashOf(config), Size: int64(len(config))}, Layers: []v1.Descriptor{}}
	for i, id := range parsed.RootFS.DiffIDs {
		layer, err := rootfs.Unpack(ctx, b.Cache, from.Paths[i+1], id)
		if err != nil {
			return built, fmt.Errorf("layer %d of %s: %w", i+1, from.Ref, err)
		}
		size, err := layer.Size()
		if err != nil {
			return built, err
		}
		same.layers[id] = layer
		manifest.Layers = append(manifest.Layers, v1.Descriptor{MediaType: types.OCIUncompressedLayer, Digest: id, Size: size})
	}
	if same.manifest, err = json.Marshal(manifest); err != nil {
		return built, err
	}
	built.OCI, err = partial.CompressedToImage(same)
	return built, err
}

// HashOf returns the digest of a blob.
func HashOf(data []byte) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: digest.FromBytes(data).Encoded()}
}

// unchanged is an image with an existing config.
type unchanged struct {
	config, manifest []byte
	layers           map[v1.Hash]v1.Layer
}

func (u unchanged) RawConfigFile() ([]byte, error)      { return u.config, nil }
func (u unchanged) RawManifest() ([]byte, error)        { return u.manifest, nil }
func (u unchanged) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (u unchanged) LayerByDigest(id v1.Hash) (partial.CompressedLayer, error) {
	return u.layers[id], nil
}
