// Package userland makes the layer with the programs that components of an image
// start: from Debian packages, a base image or official images.
package userland

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Numbers that must change if the same input results in another layer.
const (
	recipe         = 4
	officialRecipe = 1
)

const layerFile = "userland.tar"

// Make returns the userland of kubelet, kube-proxy and flanneld for a platform:
// that of a base image, or Debian packages if base is empty.
func Make(ctx context.Context, dir, base string, platform v1.Platform) (v1.Layer, cache.Part, error) {
	arch := platform.Architecture
	part, fetch, err := source(ctx, base, platform)
	if err == nil {
		part.Key = cache.Key(recipe, part.Version, part.Origin, part.How, arch)
		part.Dir, err = cache.Get(ctx, dir, "userland-"+arch+"-"+part.Key, func(tmp string) error {
			step.Report(ctx, "fetch the userland for "+arch+" from "+part.Origin, 0, 0)
			packages, err := tidy(filepath.Join(tmp, layerFile), fetch)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(tmp, "sources"), []byte(strings.Join(packages, "\n")), 0o644)
		})
	}
	if err != nil {
		return nil, part, fmt.Errorf("userland for %s: %w", arch, err)
	}
	sources, err := os.ReadFile(filepath.Join(part.Dir, "sources"))
	if err != nil {
		return nil, part, err
	}
	part.Sources = strings.Fields(string(sources))
	layer, err := rootfs.OpenLayer(filepath.Join(part.Dir, layerFile))
	return layer, part, err
}

// tidy writes the layer of a fetched file system, and returns its packages.
func tidy(out string, fetch func(raw string) error) (packages []string, err error) {
	raw := out + ".raw"
	defer os.Remove(raw)
	if err := fetch(raw); err != nil {
		return nil, err
	}
	file, err := os.Open(raw)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tree, err := rootfs.Read(file, isUnwanted)
	if err != nil {
		return nil, err
	}
	packages = parsePackages(string(tree[packagesFile].Data))
	delete(tree, packagesFile)
	addScripted(tree)
	return packages, tree.Save(out)
}

// Debian returns a layer of Debian packages under a name in the cache.
func Debian(ctx context.Context, dir, name, arch string, packages []string) (v1.Layer, error) {
	mirror, err := host.DebianMirror()
	if err != nil {
		return nil, err
	}
	return rootfs.CachedLayer(ctx, dir, name+"-"+arch+"-"+cache.Key(recipe, packages), layerFile,
		func(out string) error {
			step.Report(ctx, "fetch the userland of the images", 0, 0)
			_, err := tidy(out, func(raw string) error { return debootstrap(ctx, arch, mirror, raw, packages) })
			return err
		})
}

// Official returns a layer with Debian's base, which has mount, and on top of it
// kube-proxy's image without its programs, which has iptables. layers are the
// compressed layers of both images. It also returns the key of the layer.
func Official(
	ctx context.Context, dir string, base, proxy digest.Digest, layers []string, programs ...string,
) (v1.Layer, string, error) {
	key := cache.Key(officialRecipe, recipe, base, proxy)
	layer, err := rootfs.CachedLayer(ctx, dir, "userland-official-"+key, layerFile, func(out string) error {
		tree := rootfs.Tree{}
		for _, layer := range layers {
			if err := tree.Overlay(layer, isUnwanted); err != nil {
				return err
			}
		}
		for _, name := range append(programs, "etc/ld.so.cache") {
			delete(tree, name)
		}
		tree.LinkMerged()
		addScripted(tree)
		return tree.Save(out)
	})
	return layer, key, err
}
