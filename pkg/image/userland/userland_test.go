package userland

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// rawUserland is what an unpacked Debian looks like, in a given order.
func rawUserland(t *testing.T, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raw.tar")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Size: int64(len(name)), Mode: 0o644, ModTime: time.Now(),
			Uname: "someone",
		}
		must.NoError(t, w.WriteHeader(h))
		if _, err := w.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	must.NoError(t, errors.Join(w.Close(), os.WriteFile(path, b.Bytes(), 0o644)))
	return path
}

// treeOf reads the layer in a directory.
func treeOf(t *testing.T, dir string) rootfs.Tree {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, layerFile))
	must.NoError(t, err)
	defer file.Close()
	tree, err := rootfs.Read(file, func(string) bool { return false })
	must.NoError(t, err)
	return tree
}

func TestTidied(t *testing.T) {
	names := []string{"./usr/sbin/xtables-nft-multi", "./usr/share/doc/x/README",
		"./usr/share/ca-certificates/mozilla/A.crt",
		"./usr/share/base-passwd/passwd.master", "./var/lib/apt/lists/x", "./" + packagesFile}
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		if _, err := tidy(filepath.Join(dir, layerFile),
			func(raw string) error { return os.Rename(rawUserland(t, names...), raw) }); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(names)
	}
	a, _ := os.ReadFile(filepath.Join(one, layerFile))
	b, _ := os.ReadFile(filepath.Join(two, layerFile))
	if !bytes.Equal(a, b) {
		t.Error("the same files in another order give another layer")
	}
	tree := treeOf(t, one)
	if tree["usr/sbin/iptables"].Header.Linkname != "xtables-nft-multi" ||
		len(tree["etc/ssl/certs/ca-certificates.crt"].Data) == 0 ||
		len(tree["etc/passwd"].Data) == 0 {
		t.Error("what package scripts would make is missing")
	}
	for _, name := range []string{"usr/share/doc/x/README", "var/lib/apt/lists/x", packagesFile} {
		if _, ok := tree[name]; ok {
			t.Errorf("%s is in the layer", name)
		}
	}
}

func TestParsePackages(t *testing.T) {
	got := parsePackages("lock\npartial\niptables_1.8.11-2_amd64.deb\nbsdutils_1%3a2.41-5_arm64.deb\n")
	if want := []string{"bsdutils=1:2.41-5", "iptables=1.8.11-2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// savedImage is what `docker save` writes of an image with one file.
func savedImage(t *testing.T, arch string) string {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	text := "for " + arch
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: "usr/bin/iptables", Mode: 0o755, Size: int64(len(text)),
	})
	must.NoError(t, err)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	must.NoError(t, w.Close())
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch})
	must.NoError(t, err)
	if img, err = mutate.AppendLayers(img, static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "base.tar")
	must.NoError(t, tarball.WriteToFile(path, name.MustParseReference("base:1").(name.Tag), img))
	return path
}

func TestUserlandFromADockerArchive(t *testing.T) {
	dir, base := t.TempDir(), savedImage(t, "arm")
	_, part, err := Make(t.Context(), dir, base, v1.Platform{OS: "linux", Architecture: "arm"})
	must.NoError(t, err)
	if tree := treeOf(t, part.Dir); string(tree["usr/bin/iptables"].Data) != "for arm" {
		t.Errorf("%v", tree)
	}
	if part.Origin != "base.tar" || !strings.HasPrefix(part.Version, "sha256:") {
		t.Errorf("recorded as %s %s", part.Origin, part.Version)
	}
	if _, _, err := Make(t.Context(), dir, base, v1.Platform{OS: "linux", Architecture: "amd64"}); err == nil ||
		!strings.Contains(err.Error(), "is for arm, not for amd64") {
		t.Errorf("another architecture: %v", err)
	}
	base = filepath.Join(t.TempDir(), "NONE")
	if _, _, err := Make(t.Context(), dir, base, v1.Platform{OS: "linux", Architecture: "arm"}); err == nil ||
		!strings.Contains(err.Error(), "NONE") {
		t.Errorf("no such file: %v", err)
	}
}
