package image

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestModuleSum(t *testing.T) {
	const sum = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for want, m := range map[string]debug.Module{
		"":                                     {Path: OurRegistry + "/etcd"},
		"go.etcd.io/raft/v3@v3.7.0 " + sum:     {Path: "go.etcd.io/raft/v3", Version: "v3.7.0", Sum: sum},
		"example.com/fork@v1.0.1 " + sum:       {Path: "example.com/x", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: sum}},
		"k8s.io/api (checkout)":                {Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "/src/kubernetes/staging/src/k8s.io/api"}},
		"github.com/coredns/coredns@v1 " + sum: {Path: "github.com/coredns/coredns", Version: "v1", Sum: sum},
	} {
		if got := moduleSum(&m); got != want {
			t.Errorf("got %q, want %q", got, want)
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
	if err := writeEntry(w, "usr/bin/iptables", entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: 0o755}, data: []byte("for " + arch)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch})
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "base.tar")
	if err := tarball.WriteToFile(path, name.MustParseReference("base:1").(name.Tag), img); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUserlandFromADockerArchive(t *testing.T) {
	b := &Builder{Cache: t.TempDir(), BaseImage: savedImage(t, "arm")}
	part, err := b.userland(t.Context(), "arm")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(part.Dir, "userland.tar"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readEntries(bytes.NewReader(data))
	if err != nil || string(all["usr/bin/iptables"].data) != "for arm" {
		t.Errorf("%v %v", all, err)
	}
	if part.Origin != "base.tar" || !strings.HasPrefix(part.Version, "sha256:") {
		t.Errorf("recorded as %s %s", part.Origin, part.Version)
	}
	if _, err := b.userland(t.Context(), "amd64"); err == nil || !strings.Contains(err.Error(), "is for arm, not for amd64") {
		t.Errorf("another architecture: %v", err)
	}
	b.BaseImage = filepath.Join(t.TempDir(), "NONE")
	if _, err := b.userland(t.Context(), "arm"); err == nil || !strings.Contains(err.Error(), "NONE") {
		t.Errorf("no such file: %v", err)
	}
}

// TestCheckout: a checkout has its staging modules beside it.
func TestCheckout(t *testing.T) {
	dir := t.TempDir()
	goMod := "module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/client-go => ./staging/src/k8s.io/client-go\n)\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(goMod), 0o644); err != nil {
		t.Fatal(err)
	}
	v, _ := For("", Versions{})
	b := &Builder{Cache: t.TempDir(), K8sDir: dir}
	r := v.recipe("hyperkube")
	if err := b.prepare(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{"k8s.io/kubernetes": dir, "k8s.io/api": dir + "/staging/src/k8s.io/api"} {
		if r.Replace[module] != want {
			t.Errorf("%s comes from %q, not from %q", module, r.Replace[module], want)
		}
	}
	before := b.checkoutState()
	if err := os.WriteFile(filepath.Join(dir, "edited.go"), []byte("package x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if b.checkoutState() == before {
		t.Error("an edit of the checkout goes unnoticed")
	}
	b.K8sDir = filepath.Join(dir, "none")
	if err := b.prepare(t.Context(), &r); err == nil {
		t.Error("a checkout that is not there is accepted")
	}
}
