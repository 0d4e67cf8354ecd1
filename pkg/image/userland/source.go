package userland

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
)

const debianSuite = "trixie"

var debianPackages = []string{"base-files", "base-passwd", "ca-certificates", "conntrack", "coreutils",
	"dash", "e2fsprogs",
	"ipset", "iproute2", "iptables", "kmod", "mount", "nftables", "util-linux"}

// debianArch has Debian's own names for architectures.
var debianArch = map[string]string{"arm": "armhf", "ppc64le": "ppc64el"}

// source says where the userland comes from, and fetches it as a tar.
func source(ctx context.Context, base string, platform v1.Platform) (cache.Part, func(raw string) error, error) {
	if base != "" {
		return baseSource(ctx, base, platform)
	}
	mirror, err := host.DebianMirror()
	part := cache.Part{
		Name: "userland", Version: debianSuite, Origin: mirror,
		How: "mmdebstrap --variant=extract " + strings.Join(debianPackages, " "),
	}
	return part, func(raw string) error {
		return debootstrap(ctx, platform.Architecture, mirror, raw, debianPackages)
	}, err
}

// packagesFile names the unpacked packages. It is not part of the layer.
const packagesFile = "kube-bootstrap.packages"

// debootstrap only unpacks the packages, so that no program of a foreign
// architecture has to run here; addScripted does what their scripts would.
func debootstrap(ctx context.Context, arch, mirror, raw string, packages []string) error {
	_, err := host.Run(ctx, "mmdebstrap", "--variant=extract", "--architectures="+cmp.Or(debianArch[arch], arch),
		"--format=tar",
		`--extract-hook=ls "$1"/var/cache/apt/archives >"$1"/`+packagesFile,
		"--include="+strings.Join(packages, ","), debianSuite, raw, mirror)
	return err
}

// parsePackages parses file names: bash_1%3a5.2-1_amd64.deb is bash=1:5.2-1.
func parsePackages(names string) (all []string) {
	for line := range strings.Lines(names) {
		fields := strings.Split(strings.TrimSpace(line), "_")
		if len(fields) == 3 {
			all = append(all, fields[0]+"="+strings.ReplaceAll(fields[1], "%3a", ":"))
		}
	}
	slices.Sort(all)
	return all
}

// baseImage opens a base image: a file, as `docker save` writes it, or a reference.
func baseImage(ctx context.Context, base string, platform v1.Platform) (v1.Image, error) {
	if info, err := os.Stat(base); err == nil && info.Mode().IsRegular() {
		return tarball.ImageFromPath(base, nil)
	}
	parsed, err := name.ParseReference(base)
	if err != nil {
		return nil, err
	}
	img, err := remote.Image(parsed, remote.WithContext(ctx), remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", base, err)
	}
	return img, nil
}

// baseSource is source for a base image, whose digest identifies the part.
func baseSource(ctx context.Context, base string, platform v1.Platform) (cache.Part, func(raw string) error, error) {
	img, err := baseImage(ctx, base, platform)
	if err != nil {
		return cache.Part{}, nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return cache.Part{}, nil, fmt.Errorf("base image %s: %w", base, err)
	}
	if config.Architecture != platform.Architecture {
		return cache.Part{}, nil,
			fmt.Errorf("base image %s is for %s, not for %s", base, config.Architecture, platform.Architecture)
	}
	id, err := img.ConfigName()
	flatten := func(raw string) error {
		files := mutate.Extract(img)
		defer files.Close()
		return cache.Save(raw, files)
	}
	return cache.Part{Name: "userland", Version: id.String(), Origin: filepath.Base(base), How: "flattened"}, flatten,
		err
}
