package image

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/userland"
)

// Built is an image for one architecture.
type Built struct {
	Image
	Arch  string
	OCI   v1.Image
	Parts []cache.Part
}

// CNIDir is the directory of the CNI plugins, in hyperkube and on a host.
const CNIDir = "/opt/cni/bin"

// CNIPlugins are the names of the files in CNIDir.
var CNIPlugins = []string{"bridge", "host-local", "loopback", "portmap"}

type shape struct {
	userland   bool
	plugins    bool
	program    string // directory of the program
	links      map[string]string
	user       string
	entrypoint []string
}

func shapeOf(name string) shape {
	switch name {
	case "hyperkube":
		s := shape{userland: true, plugins: true, program: "usr/local/bin/hyperkube", links: map[string]string{}}
		for _, p := range Programs() {
			s.links["usr/local/bin/"+p] = "hyperkube"
		}
		return s
	case "flannel":
		return shape{userland: true, program: "opt/bin/flanneld",
			links:      map[string]string{"usr/local/bin/flanneld": "/opt/bin/flanneld"},
			entrypoint: []string{"/opt/bin/flanneld"}}
	case "coredns":
		return shape{program: "coredns", entrypoint: []string{"/coredns"}}
	case "pause":
		return shape{program: "pause", user: "65535:65535", entrypoint: []string{"/pause"}}
	case "metrics-server":
		return shape{program: "metrics-server", user: "65534:65534", entrypoint: []string{"/metrics-server"}}
	case "local-path-provisioner":
		return shape{program: "usr/bin/local-path-provisioner", user: "65534:65534"}
	case "metallb-controller":
		return shape{program: "controller", user: "65534:65534", entrypoint: []string{"/controller"}}
	case "metallb-speaker":
		return shape{program: "speaker", entrypoint: []string{"/speaker"}}
	}
	return shape{program: "usr/local/bin/" + name}
}

// Build builds an image for one architecture, or takes it from the cache.
func (b *Builder) Build(ctx context.Context, v Versions, img Image, arch string) (Built, error) {
	built := Built{Image: img, Arch: arch}
	s := shapeOf(img.Name)
	layers, err := b.shared(ctx, v, s, &built)
	if err != nil {
		return built, err
	}
	recipe := v.Recipe(img.Name)
	part, err := b.Compile(ctx, recipe, arch)
	if err != nil {
		return built, err
	}
	built.Parts = append(built.Parts, part)
	own := rootfs.Content{
		Files: map[string]string{s.program: filepath.Join(part.Dir, recipe.Program(recipe.Packages[0]))},
		Links: s.links,
	}
	layer, err := rootfs.Layer(ctx, b.Cache,
		fmt.Sprintf("layer-%s-%s-%s", img.Name, arch, cache.Key(part.Key, s.program, s.links)), own)
	if err != nil {
		return built, err
	}
	built.OCI, err = Assemble(append(layers, layer), arch, s.config(img.Name))
	return built, err
}

// shared returns the lower layers that several images have in common. Stores
// keep them once, and they change less often than the components.
func (b *Builder) shared(ctx context.Context, v Versions, s shape, built *Built) ([]v1.Layer, error) {
	var layers []v1.Layer
	if s.userland {
		layer, part, err := userland.Make(ctx, b.Cache, b.BaseImage, Platform(built.Arch))
		if err != nil {
			return nil, err
		}
		layers, built.Parts = append(layers, layer), append(built.Parts, part)
	}
	if s.plugins {
		part, err := b.Compile(ctx, v.Recipe("cni"), built.Arch)
		if err != nil {
			return nil, err
		}
		layer, err := b.plugins(ctx, "cni-"+built.Arch+"-"+part.Key, part.Dir)
		if err != nil {
			return nil, err
		}
		layers, built.Parts = append(layers, layer), append(built.Parts, part)
	}
	return layers, nil
}

func (b *Builder) plugins(ctx context.Context, name, dir string) (v1.Layer, error) {
	files := map[string]string{}
	for _, p := range CNIPlugins {
		files[CNIDir[1:]+"/"+p] = filepath.Join(dir, p)
	}
	return rootfs.Layer(ctx, b.Cache, "layer-"+name, rootfs.Content{Files: files})
}

func (s shape) config(name string) v1.Config {
	c := v1.Config{User: s.user, Entrypoint: s.entrypoint, Labels: map[string]string{OurRegistry + "/image": name}}
	if s.entrypoint == nil {
		c.Cmd = []string{name}
	}
	return c
}

// Assemble returns an OCI image of layers for an architecture. The environment
// of config is a PATH.
func Assemble(layers []v1.Layer, arch string, config v1.Config) (v1.Image, error) {
	p := Platform(arch)
	config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	c := v1.ConfigFile{
		Architecture: p.Architecture, OS: p.OS, Variant: p.Variant, Created: v1.Time{Time: time.Unix(0, 0).UTC()},
		Config: config,
	}
	c.RootFS.Type = "layers"
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &c)
	if err != nil {
		return nil, err
	}
	var adds []mutate.Addendum
	for _, l := range layers {
		adds = append(adds, mutate.Addendum{Layer: l, MediaType: types.OCIUncompressedLayer,
			History: v1.History{Created: c.Created, CreatedBy: "kube-bootstrap offline build"}})
	}
	return mutate.Append(img, adds...)
}

// Platform returns the platform of an architecture in an image index.
func Platform(arch string) v1.Platform {
	p := v1.Platform{OS: "linux", Architecture: arch}
	if arch == "arm" {
		p.Variant = "v7"
	}
	return p
}
