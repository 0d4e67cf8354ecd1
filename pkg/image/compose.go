package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/userland"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Fetched is an origin that was downloaded.
type Fetched struct {
	OfficialSource
	Digest digest.Digest
	Paths  []string // the file, or the image's config and compressed layers
}

func (f Fetched) part(version string) cache.Part {
	return cache.Part{
		Name: f.Name, Version: version, Origin: f.Where() + "@" + f.Digest.String(), How: "pulled", Key: f.key(),
	}
}

func (f Fetched) key() string { return f.Digest.Encoded()[:16] }

// Compose assembles an image of the catalogue from official images and files.
// It is equivalent to the image that Build builds from source.
func (b *Builder) Compose(
	ctx context.Context, v Versions, img Image, arch string, origins map[string]Fetched,
) (Built, error) {
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
		return built, fmt.Errorf("%s has %d layers, but its config names %d", from.Ref, len(from.Paths)-1,
			len(parsed.RootFS.DiffIDs))
	}
	same := unchanged{config: config, layers: map[v1.Hash]v1.Layer{}}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: HashOf(config), Size: int64(len(config))},
		Layers: []v1.Descriptor{}}
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
		manifest.Layers = append(manifest.Layers, v1.Descriptor{
			MediaType: types.OCIUncompressedLayer, Digest: id, Size: size,
		})
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

// programDir is the directory of components in official images and in hyperkube.
const programDir = "usr/local/bin"

// composeHyperkube adds the official components to a userland.
func (b *Builder) composeHyperkube(
	ctx context.Context, v Versions, img Image, arch string, origins map[string]Fetched,
) (Built, error) {
	built := Built{Image: img, Arch: arch}
	var layers []v1.Layer
	add := func(layer v1.Layer, part cache.Part) {
		layers, built.Parts = append(layers, layer), append(built.Parts, part)
	}
	layer, part, err := b.officialUserland(ctx, origins["debian-base"], origins["kube-proxy"])
	if err != nil {
		return built, fmt.Errorf("userland: %w", err)
	}
	add(layer, part)
	plugins, err := b.officialPlugins(ctx, arch, origins["cni"])
	if err != nil {
		return built, fmt.Errorf("CNI plugins: %w", err)
	}
	add(plugins, origins["cni"].part("v"+v.CNI))
	for _, name := range Programs() {
		step.Report(ctx, "unpack "+name+" for "+arch, 0, 0)
		layer, err := b.officialProgram(ctx, arch, origins[name])
		if err != nil {
			return built, fmt.Errorf("%s: %w", name, err)
		}
		add(layer, origins[name].part(v.Kubernetes))
	}
	config := shapeOf("hyperkube").config(img.Name)
	config.Cmd = []string{"kubelet"} // hyperkube contains no program of its own name
	built.OCI, err = Assemble(layers, arch, config)
	return built, err
}

// officialProgram returns a layer with one component, from its image or its file.
func (b *Builder) officialProgram(ctx context.Context, arch string, from Fetched) (v1.Layer, error) {
	name := "program-" + from.Name + "-" + arch + "-" + from.key()
	file := from.Paths[0]
	if from.Ref != "" {
		dir, err := cache.Get(ctx, b.Cache, "file-"+name, func(dir string) error {
			return rootfs.ExtractLast(from.Paths[1:], path.Join(programDir, from.Name), filepath.Join(dir, from.Name))
		})
		if err != nil {
			return nil, err
		}
		file = filepath.Join(dir, from.Name)
	}
	return rootfs.Layer(ctx, b.Cache, "layer-"+name, rootfs.Content{
		Files: map[string]string{path.Join(programDir, from.Name): file},
	})
}

func (b *Builder) officialPlugins(ctx context.Context, arch string, from Fetched) (v1.Layer, error) {
	name := "cni-" + arch + "-" + from.key()
	dir, err := cache.Get(ctx, b.Cache, "file-"+name, func(dir string) error {
		files := map[string]string{}
		for _, p := range CNIPlugins {
			files[p] = filepath.Join(dir, p)
		}
		found, err := rootfs.Extract(from.Paths[0], files)
		if err == nil && found != len(files) {
			err = fmt.Errorf("%s holds only %d of %v", from.URL, found, CNIPlugins)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.plugins(ctx, name, dir)
}

func (b *Builder) officialUserland(ctx context.Context, base, proxy Fetched) (v1.Layer, cache.Part, error) {
	layers := slices.Concat(base.Paths[1:], proxy.Paths[1:])
	layer, key, err := userland.Official(ctx, b.Cache, base.Digest, proxy.Digest, layers,
		programDir+"/kube-proxy", "go-runner")
	part := base.part("kube-proxy over debian-base")
	part.Name, part.Origin, part.How, part.Key = "userland", part.Origin+" "+proxy.part("").Origin,
		"pulled and laid together", key
	return layer, part, err
}
