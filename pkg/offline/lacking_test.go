package offline

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
)

// Without the bundle, the error names what the bundle is needed for.
func TestErrorOfABundleNamesTheImages(t *testing.T) {
	dir := t.TempDir()
	s := Source{
		Path: filepath.Join(dir, "none.tar.zst"), Arch: "amd64", Files: host.Files{Root: dir},
		Images: []image.Image{
			{Name: "pause", Ref: "registry.k8s.io/pause:3.10", Stores: []image.Store{image.Containerd}},
			{Name: "etcd", Ref: "registry.k8s.io/etcd:3.7.0-0", Stores: []image.Store{image.Bootstrap}},
		},
	}
	_, err := s.Load(imagestore.Containerd(filepath.Join(dir, "none.sock"), "", dir, nil)).Check(t.Context())
	if !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "containerd lacks registry.k8s.io/pause:3.10: no bundle at ") {
		t.Errorf("got %v", err)
	}
}
