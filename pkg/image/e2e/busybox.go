package e2e

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// busybox is compiled from the upstream source that Debian's archive contains.
// Debian's own binary does not fit: its shell drops environment variables whose
// names are not valid shell names, and some tests check them.
const (
	busyboxVersion = "1.37.0"
	busyboxSource  = "/pool/main/b/busybox/busybox_" + busyboxVersion + ".orig.tar.bz2"
	busyboxSHA256  = "3311dff32e746499f4df0d5df04d7eb396382d7e108bb9250e7b519b837043a4"
)

// busyboxOptions change the default configuration. tc does not compile with the
// headers of Linux 6.8 and newer.
// https://github.com/mirror/busybox/issues/91
var busyboxOptions = strings.NewReplacer("# CONFIG_STATIC is not set", "CONFIG_STATIC=y", "CONFIG_TC=y",
	"# CONFIG_TC is not set",
	"CONFIG_FEATURE_TC_INGRESS=y", "# CONFIG_FEATURE_TC_INGRESS is not set")

// busybox adds the program and one link for each of its commands.
func busybox(ctx context.Context, b build, own *rootfs.Content) error {
	if b.arch != runtime.GOARCH {
		return fmt.Errorf("busybox is compiled with the C compiler of this machine, and only for %s", runtime.GOARCH)
	}
	dir, err := cache.Get(ctx, b.builder.Cache, "busybox-"+busyboxVersion+"-"+b.arch,
		func(dir string) error { return makeBusybox(ctx, dir) })
	if err != nil {
		return fmt.Errorf("busybox: %w", err)
	}
	applets, err := os.ReadFile(filepath.Join(dir, "applets"))
	if err != nil {
		return err
	}
	own.Files["bin/busybox"] = filepath.Join(dir, "busybox")
	own.Links = map[string]string{}
	// Upstream's image has all of them in /bin, and some tests call them there.
	for _, applet := range strings.Fields(string(applets)) {
		own.Links[applet], own.Links["bin/"+filepath.Base(applet)] = "/bin/busybox", "/bin/busybox"
	}
	delete(own.Links, "bin/busybox")
	return nil
}

func makeBusybox(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp("", "kube-bootstrap-busybox-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := fetchBusybox(ctx, work); err != nil {
		return err
	}
	source := filepath.Join(work, "busybox-"+busyboxVersion)
	step.Report(ctx, "compile busybox "+busyboxVersion, 0, 0)
	make := func(args ...string) error {
		_, err := host.Command{Args: append([]string{"make", "-C", source, "-j" + strconv.Itoa(runtime.NumCPU())},
			args...)}.Run(ctx)
		return err
	}
	if err := make("defconfig"); err != nil {
		return err
	}
	config := filepath.Join(source, ".config")
	chosen, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, []byte(busyboxOptions.Replace(string(chosen))), 0o644); err != nil {
		return err
	}
	if err := make("busybox"); err != nil {
		return err
	}
	applets, err := host.Run(ctx, filepath.Join(source, "busybox"), "--list-full")
	return errors.Join(err, os.Rename(filepath.Join(source, "busybox"), filepath.Join(dir, "busybox")),
		os.WriteFile(filepath.Join(dir, "applets"), []byte(applets), 0o644))
}

// largestSource is larger than the source of busybox, in bytes.
const largestSource = 64 << 20

// fetchBusybox downloads the source, verifies its checksum and unpacks it.
func fetchBusybox(ctx context.Context, work string) error {
	mirror, err := host.DebianMirror()
	if err != nil {
		return err
	}
	from := strings.TrimSuffix(mirror, "/") + busyboxSource
	step.Report(ctx, "fetch "+from, 0, 0)
	answer, err := link.GetFrom(ctx, http.DefaultClient, from, 0)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("fetch %s: %s", from, answer.Status)
	}
	packed, err := io.ReadAll(io.LimitReader(answer.Body, largestSource)) // the checksum finds a longer one
	if err != nil {
		return fmt.Errorf("fetch %s: %w", from, err)
	}
	if sum := image.HashOf(packed).Hex; sum != busyboxSHA256 {
		return fmt.Errorf("%s has SHA-256 %s, not %s", from, sum, busyboxSHA256)
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer root.Close()
	return rootfs.EachEntry(bzip2.NewReader(bytes.NewReader(packed)),
		func(name string, h *tar.Header, content io.Reader) error {
			return unpackEntry(root, name, h, content)
		})
}

func unpackEntry(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		data, err := io.ReadAll(content)
		return errors.Join(err, root.MkdirAll(filepath.Dir(name), 0o755),
			root.WriteFile(name, data, os.FileMode(h.Mode)&0o777))
	}
	return nil
}
