package image

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/userland"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// programDir is the directory of the component in the official images and in
// hyperkube.
const programDir = "usr/local/bin"

// composeHyperkube adds the official components to a userland for kubelet and
// kube-proxy.
func (b *Builder) composeHyperkube(ctx context.Context, v Versions, img Image, arch string, origins map[string]Fetched) (Built, error) {
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

// officialProgram returns a layer with one component, from its image or its
// file.
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
	return rootfs.Layer(ctx, b.Cache, "layer-"+name, rootfs.Content{Files: map[string]string{path.Join(programDir, from.Name): file}})
}

// officialPlugins returns a layer with the CNI plugins of a release.
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

// officialUserland returns the userland of official images.
func (b *Builder) officialUserland(ctx context.Context, base, proxy Fetched) (v1.Layer, cache.Part, error) {
	layer, key, err := userland.Official(ctx, b.Cache, base.layers(), proxy.layers(), programDir+"/kube-proxy", "go-runner")
	part := base.part("kube-proxy over debian-base")
	part.Name, part.Origin, part.How, part.Key = "userland", part.Origin+" "+proxy.part("").Origin, "pulled and laid together", key
	return layer, part, err
}

func (f Fetched) layers() userland.Layers {
	return userland.Layers{Image: f.Digest, Files: f.Paths[1:]}
}
