package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// writeBundle writes a bundle of images with a cache of its own.
func writeBundle(t *testing.T, built []image.Built) string {
	t.Helper()
	b, err := bundle.NewBuilder(bundletest.Versions(t), built)
	if err != nil {
		t.Fatal(err)
	}
	b.Cache = t.TempDir()
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	if err := b.Write(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func sourceOf(t *testing.T) Source {
	t.Helper()
	v := bundletest.Versions(t)
	return Source{Path: writeBundle(t, bundletest.Images(t, v, "amd64", "arm")), Images: image.Catalogue(v, ""), Arch: "amd64", Files: host.Files{Root: t.TempDir()}}
}

func TestPluginsOfABundle(t *testing.T) {
	s := sourceOf(t)
	install := s.InstallCNIPlugins()
	hosttest.Contract(t, hosttest.Tree(t, s.Files.Root), install)
	if err := install.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s.Files.Path(image.CNIDir+"/portmap")); !strings.Contains(got, "# ours too") {
		t.Errorf("portmap has the content %q", got)
	}
}
