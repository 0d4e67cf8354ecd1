package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The userland of kubelet, kube-proxy and flanneld: what they start.
const debianSuite = "trixie"

var debianPackages = []string{"base-files", "base-passwd", "ca-certificates", "conntrack", "coreutils", "dash", "e2fsprogs",
	"ipset", "iproute2", "iptables", "kmod", "mount", "nftables", "util-linux"}

// debianArch has Debian's own names for architectures.
var debianArch = map[string]string{"arm": "armhf", "ppc64le": "ppc64el"}

const userlandRecipe = 4 // counts changes to the fix-ups

// userland returns a Part whose Dir holds userland.tar, ready as a layer.
func (b *Builder) userland(ctx context.Context, arch string) (Part, error) {
	part, fetch, err := b.userlandSource(ctx, arch)
	if err != nil {
		return Part{}, fmt.Errorf("userland for %s: %w", arch, err)
	}
	part.Key = key(userlandRecipe, part.Version, part.Origin, part.How, arch)
	part.Dir, err = Cached(ctx, b.Cache, "userland-"+arch+"-"+part.Key, func(dir string) error {
		raw := filepath.Join(dir, "raw.tar")
		defer os.Remove(raw)
		step.Report(ctx, "fetch the userland for "+arch+" from "+part.Origin, 0, 0)
		if err := fetch(raw); err != nil {
			return err
		}
		sources, err := packages(raw)
		if err != nil {
			return err
		}
		return errors.Join(tidyUserland(raw, filepath.Join(dir, "userland.tar")),
			os.WriteFile(filepath.Join(dir, "sources"), []byte(strings.Join(sources, "\n")), 0o644))
	})
	if err != nil {
		return Part{}, fmt.Errorf("userland for %s: %w", arch, err)
	}
	sources, err := os.ReadFile(filepath.Join(part.Dir, "sources"))
	part.Sources = strings.Fields(string(sources))
	return part, err
}

// userlandSource says where the userland comes from, and fetches it as a tar.
func (b *Builder) userlandSource(ctx context.Context, arch string) (Part, func(raw string) error, error) {
	if b.BaseImage != "" {
		return baseSource(ctx, b.BaseImage, arch)
	}
	mirror, err := host.DebianMirror()
	part := Part{Name: "userland", Version: debianSuite, Origin: mirror, How: "mmdebstrap --variant=extract " + strings.Join(debianPackages, " ")}
	return part, func(raw string) error { return debootstrap(ctx, arch, mirror, raw, debianPackages) }, err
}

// debootstrap only unpacks the packages, so that no program of a foreign
// architecture has to run here; tidyUserland does what their scripts would.
func debootstrap(ctx context.Context, arch, mirror, raw string, packages []string) error {
	if d, ok := debianArch[arch]; ok {
		arch = d
	}
	_, err := host.Run(ctx, "mmdebstrap", "--variant=extract", "--architectures="+arch, "--format=tar",
		`--extract-hook=ls "$1"/var/cache/apt/archives >"$1"/`+packagesFile,
		"--include="+strings.Join(packages, ","), debianSuite, raw, mirror)
	return err
}

// BaseArchive reports whether a base image is a file, as `docker save` writes
// it, and not a reference.
func BaseArchive(base string) bool {
	info, err := os.Stat(base)
	return err == nil && info.Mode().IsRegular()
}

// baseImage opens the image that the userland is taken from.
func baseImage(ctx context.Context, base, arch string) (v1.Image, error) {
	if BaseArchive(base) {
		return tarball.ImageFromPath(base, nil)
	}
	parsed, err := name.ParseReference(base)
	if err != nil {
		return nil, err
	}
	img, err := remote.Image(parsed, remote.WithContext(ctx), remote.WithPlatform(platform(arch)))
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", base, err)
	}
	return img, nil
}

// baseSource is userlandSource for a base image. Its digest is in the part, so
// that another image of the same name makes another userland.
func baseSource(ctx context.Context, base, arch string) (Part, func(raw string) error, error) {
	img, err := baseImage(ctx, base, arch)
	if err != nil {
		return Part{}, nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return Part{}, nil, fmt.Errorf("base image %s: %w", base, err)
	}
	if config.Architecture != arch {
		return Part{}, nil, fmt.Errorf("base image %s is for %s, not for %s", base, config.Architecture, arch)
	}
	id, err := img.ConfigName()
	part := Part{Name: "userland", Version: id.String(), Origin: filepath.Base(base), How: "flattened"}
	return part, func(raw string) error { return flatten(img, raw) }, err
}

// flatten writes the file system of an image as one archive.
func flatten(img v1.Image, raw string) error {
	files := mutate.Extract(img)
	defer files.Close()
	return writeFrom(raw, files)
}

func platform(arch string) v1.Platform {
	p := v1.Platform{OS: "linux", Architecture: arch}
	if arch == "arm" {
		p.Variant = "v7"
	}
	return p
}
