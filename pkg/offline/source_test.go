package offline

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// writeBundle writes a bundle of images with a cache of its own.
func writeBundle(t *testing.T, built []image.Built) string {
	t.Helper()
	b, err := bundle.NewBuilder(bundletest.Versions(t), built)
	must.NoError(t, err)
	b.Cache = t.TempDir()
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, b.Write(t.Context(), path))
	return path
}

func sourceOf(t *testing.T) Source {
	t.Helper()
	v := bundletest.Versions(t)
	return Source{
		Path: writeBundle(t, bundletest.Images(t, v, "amd64", "arm")), Images: image.Catalogue(v, ""), Arch: "amd64",
		Files: host.Files{Root: t.TempDir()},
	}
}

// TestPlugins: every source has the plugins, be it a bundle, a registry or a
// Docker that has the images.
func TestPlugins(t *testing.T) {
	d, _ := dockertest.Start(t)
	file := sourceOf(t)
	must.NoError(t, file.Load(imagestore.Docker(image.Main, d)).Apply(t.Context()))
	inDocker, inRegistry := file, file
	inDocker.Docker, inRegistry.Registry = d, pushed(t, file.Path)
	for name, s := range map[string]Source{"bundle": file, "main Docker": inDocker, "registry": inRegistry} {
		t.Run(name, func(t *testing.T) {
			s.Versions, s.Files = bundletest.Versions(t), host.Files{Root: t.TempDir()}
			install := s.InstallCNIPlugins()
			hosttest.Contract(t, hosttest.Tree(t, s.Files.Root), install)
			must.NoError(t, install.Apply(t.Context()))
			if got := string(must.Read(t, s.Files.Path(image.CNIDir+"/portmap"))); !strings.Contains(got,
				"# ours too") {
				t.Errorf("portmap has the content %q", got)
			}
		})
	}
}
