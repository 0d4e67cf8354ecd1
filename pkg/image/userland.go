package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The userland of kubelet, kube-proxy and flanneld: what they start.
const debianSuite = "trixie"

var debianPackages = []string{"base-files", "base-passwd", "ca-certificates", "conntrack", "coreutils", "dash", "e2fsprogs",
	"ipset", "iproute2", "iptables", "kmod", "mount", "nftables", "util-linux"}

// debianArch has Debian's own names for architectures.
var debianArch = map[string]string{"arm": "armhf", "ppc64le": "ppc64el"}

const userlandRecipe = 3 // counts changes to the fix-ups

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
		return tidyUserland(raw, filepath.Join(dir, "userland.tar"))
	})
	if err != nil {
		return Part{}, fmt.Errorf("userland for %s: %w", arch, err)
	}
	return part, nil
}

// userlandSource says where the userland comes from, and fetches it as a tar.
func (b *Builder) userlandSource(ctx context.Context, arch string) (Part, func(raw string) error, error) {
	if b.BaseImage != "" {
		part := Part{Name: "userland", Version: b.BaseImage, Origin: b.BaseImage, How: "pulled and flattened"}
		return part, func(raw string) error { return flatten(ctx, b.BaseImage, arch, raw) }, nil
	}
	mirror, err := host.DebianMirror()
	part := Part{Name: "userland", Version: debianSuite, Origin: mirror, How: "mmdebstrap --variant=extract " + strings.Join(debianPackages, " ")}
	return part, func(raw string) error { return debootstrap(ctx, arch, mirror, raw) }, err
}

// debootstrap only unpacks the packages, so that no program of a foreign
// architecture has to run here; tidyUserland does what their scripts would.
func debootstrap(ctx context.Context, arch, mirror, raw string) error {
	if d, ok := debianArch[arch]; ok {
		arch = d
	}
	_, err := host.Run(ctx, "mmdebstrap", "--variant=extract", "--architectures="+arch, "--format=tar",
		"--include="+strings.Join(debianPackages, ","), debianSuite, raw, mirror)
	return err
}

// flatten pulls an image and writes its file system as one archive.
func flatten(ctx context.Context, ref, arch, raw string) error {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	img, err := remote.Image(parsed, remote.WithContext(ctx), remote.WithPlatform(platform(arch)))
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
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
