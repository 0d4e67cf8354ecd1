package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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
	add := func(layer v1.Layer, part Part) {
		layers, built.Parts = append(layers, layer), append(built.Parts, part)
	}
	userland, part, err := b.officialUserland(ctx, origins["debian-base"], origins["kube-proxy"])
	if err != nil {
		return built, fmt.Errorf("userland: %w", err)
	}
	add(userland, part)
	plugins, err := b.officialPlugins(ctx, arch, origins["cni"])
	if err != nil {
		return built, fmt.Errorf("CNI plugins: %w", err)
	}
	add(plugins, origins["cni"].part("v"+v.CNI))
	for _, name := range slices.Concat(imagePrograms, filePrograms) {
		step.Report(ctx, "unpack "+name+" for "+arch, 0, 0)
		layer, err := b.officialProgram(ctx, arch, origins[name])
		if err != nil {
			return built, fmt.Errorf("%s: %w", name, err)
		}
		add(layer, origins[name].part(v.Kubernetes))
	}
	config := shapeOf("hyperkube").config(img.Name, arch)
	config.Config.Cmd = []string{"kubelet"} // hyperkube contains no program of its own name
	built.OCI, err = assemble(layers, config)
	return built, err
}

// officialProgram returns a layer with one component, from its image or its
// file.
func (b *Builder) officialProgram(ctx context.Context, arch string, from Fetched) (v1.Layer, error) {
	name := "program-" + from.Name + "-" + arch + "-" + from.key()
	file := from.Paths[0]
	if from.Ref != "" {
		dir, err := Cached(ctx, b.Cache, "file-"+name, func(dir string) error {
			return extract(from.Paths[1:], path.Join(programDir, from.Name), filepath.Join(dir, from.Name))
		})
		if err != nil {
			return nil, err
		}
		file = filepath.Join(dir, from.Name)
	}
	return b.layer(ctx, "layer-"+name, content{Files: map[string]string{path.Join(programDir, from.Name): file}})
}

// extract copies a file from the layers of an image. The last layer that
// contains it counts.
func extract(layers []string, name, out string) error {
	for _, layer := range slices.Backward(layers) {
		found, err := extractFrom(layer, map[string]string{name: out})
		if err != nil || found == 1 {
			return err
		}
	}
	return fmt.Errorf("there is no /%s in the image", name)
}

// extractFrom copies files from a compressed tar, by their names, and returns
// how many it found.
func extractFrom(layer string, files map[string]string) (found int, err error) {
	err = eachMember(layer, func(name string, h *tar.Header, r io.Reader) error {
		out, ok := files[name]
		if !ok || h.Typeflag != tar.TypeReg {
			return nil
		}
		found++
		return writeFrom(out, r)
	})
	return found, err
}

// eachMember calls do for each member of a compressed tar, with a clean name.
func eachMember(file string, do func(name string, h *tar.Header, r io.Reader) error) error {
	plain, err := openPacked(file)
	if err != nil {
		return err
	}
	defer plain.Close()
	archive := tar.NewReader(plain)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(path.Clean("/" + h.Name)[1:], h, archive); err != nil {
			return err
		}
	}
}

// officialPlugins returns a layer with the CNI plugins of a release.
func (b *Builder) officialPlugins(ctx context.Context, arch string, from Fetched) (v1.Layer, error) {
	name := "cni-" + arch + "-" + from.key()
	dir, err := Cached(ctx, b.Cache, "file-"+name, func(dir string) error {
		files := map[string]string{}
		for _, p := range CNIPlugins {
			files[p] = filepath.Join(dir, p)
		}
		found, err := extractFrom(from.Paths[0], files)
		if err == nil && found != len(files) {
			err = fmt.Errorf("%s holds only %d of %v", from.URL, found, CNIPlugins)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, p := range CNIPlugins {
		files[CNIDir[1:]+"/"+p] = filepath.Join(dir, p)
	}
	return b.layer(ctx, "layer-"+name, content{Files: files})
}

const officialUserlandRecipe = 1 // must change if the same images result in another layer

// officialUserland returns a layer with Debian's base, which has mount, and
// on top of it kube-proxy's image without its executable, which has iptables.
func (b *Builder) officialUserland(ctx context.Context, base, proxy Fetched) (v1.Layer, Part, error) {
	part := base.part("kube-proxy over debian-base")
	part.Name, part.Origin, part.How = "userland", part.Origin+" "+proxy.part("").Origin, "pulled and laid together"
	part.Key = key(officialUserlandRecipe, userlandRecipe, base.Digest, proxy.Digest)
	dir, err := Cached(ctx, b.Cache, "userland-official-"+part.Key, func(dir string) error {
		all := map[string]entry{}
		for _, layer := range slices.Concat(base.Paths[1:], proxy.Paths[1:]) {
			if err := overlay(all, layer); err != nil {
				return err
			}
		}
		for _, name := range []string{programDir + "/kube-proxy", "go-runner", "etc/ld.so.cache"} {
			delete(all, name)
		}
		mergedLinks(all)
		return writeUserland(all, filepath.Join(dir, "userland.tar"))
	})
	if err != nil {
		return nil, part, err
	}
	layer, err := openLayer(filepath.Join(dir, "userland.tar"))
	return layer, part, err
}
