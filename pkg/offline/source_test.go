package offline

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
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
