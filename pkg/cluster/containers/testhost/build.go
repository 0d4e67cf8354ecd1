package testhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ImageStep returns the step that imports a host image from the cache or from Debian's packages.
func ImageStep(c containers.Cluster, name string) step.Step {
	image := variants[name].reference(name)
	return step.When(step.IDOf("host-image", name), "make host image "+name, "import image "+image,
		func(ctx context.Context) (bool, error) {
			has, err := c.Engine.Images().Has(ctx, image)
			return !has, err
		}, func(ctx context.Context) error { return makeImage(ctx, c, name, image) })
}

func makeImage(ctx context.Context, c containers.Cluster, name, image string) error {
	dir := filepath.Join(c.Session.CacheDir, "hosts")
	path := filepath.Join(dir, strings.TrimPrefix(image, Images+":")+".tar.zst")
	// The directory is named after the variant, so that the next build removes the files of a
	// killed one, even if the content of the image has changed since.
	return cache.InTemporary(ctx, filepath.Join(dir, name), "host image "+name, func(tmp string) error {
		if !session.FileExists(path) {
			if err := variants[name].build(ctx, tmp, path); err != nil {
				return err
			}
		}
		return importRootfs(ctx, c.Engine.Images(), image, path)
	})
}

func importRootfs(ctx context.Context, images docker.ImageService, ref, path string) error {
	return withFile(ctx, "import "+ref, path, func(packed io.Reader, _ os.FileInfo) error {
		plain, err := zstd.NewReader(packed)
		if err != nil {
			return err
		}
		defer plain.Close()
		return images.Import(ctx, ref, plain)
	})
}

// build creates the root file system with mmdebstrap and writes it compressed to
// path, by way of the directory tmp. A reader of path sees a complete file or
// none, also after a power failure.
func (v variant) build(ctx context.Context, tmp, path string) error {
	out, err := os.Create(filepath.Join(tmp, "rootfs"))
	if err != nil {
		return err
	}
	defer out.Close()
	packed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	if err := errors.Join(v.bootstrap(ctx, packed), packed.Close(), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// hooks are the options of mmdebstrap that do not depend on the variant.
var hooks = []string{
	"--variant=minbase", "--format=tar",
	`--aptopt=Apt::Install-Recommends "false"`,
	`--aptopt=Acquire::Check-Valid-Until "false"`,
	`--aptopt=APT::Default-Release "` + suite + `"`,
	"--dpkgopt=path-exclude=/usr/share/man/*",
	"--dpkgopt=path-exclude=/usr/share/locale/*",
	"--dpkgopt=path-exclude=/usr/share/doc/*",
}

func (v variant) bootstrap(ctx context.Context, out io.Writer) error {
	overlay, err := v.overlay()
	if err != nil {
		return err
	}
	defer os.Remove(overlay)
	mirror, err := host.DebianMirror()
	if err != nil {
		return err
	}
	var last []string
	reports := &remote.Lines{Do: func(line []byte) {
		text := strings.TrimSpace(string(line))
		last = append(last[max(0, len(last)-remote.LastLines+1):], text)
		step.Report(ctx, strings.TrimPrefix(text, "I: "), 0, 0)
	}}
	_, err = host.Command{Args: v.args(overlay, mirror), Stdout: out, Stderr: reports}.Run(ctx)
	reports.Flush()
	if err != nil {
		return fmt.Errorf("make a root file system from Debian packages (is mmdebstrap installed?): %w\n%s",
			err, strings.Join(last, "\n"))
	}
	return nil
}

func (v variant) args(overlay, mirror string) []string {
	args := append([]string{"mmdebstrap", "--include=" + v.Packages}, hooks...)
	sources := []string{"deb " + mirror + " " + suite + " main"}
	if v.Newer != "" {
		sources = append(sources, "deb "+mirror+" "+newerSuite+" main")
		args = append(args, `--customize-hook=DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get install -y -q -t `+
			newerSuite+" "+v.Newer)
	}
	if v.Compiled != "" {
		args = append(args, "--customize-hook="+v.Compiled)
	}
	if v.Without != "" {
		args = append(args, `--customize-hook=cd "$1"/etc && for s in `+v.Without+
			`; do rm -f init.d/$s rc?.d/[SK][0-9][0-9]$s runlevels/*/$s; done`)
	}
	args = append(args, "--customize-hook=tar-in "+overlay+" /", suite, "-")
	return append(args, sources...)
}
