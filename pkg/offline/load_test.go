package offline

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
)

func TestCheckWithoutAnyStore(t *testing.T) {
	d := docker.Open(filepath.Join(t.TempDir(), "none.sock"))
	s := sourceOf(t)
	for _, store := range []imagestore.Target{imagestore.Docker(image.Bootstrap, d),
		imagestore.Containerd(filepath.Join(t.TempDir(), "none.sock"), "", "", nil)} {
		diff, err := s.Load(store).Check(t.Context())
		if err != nil || len(diff) == 0 {
			t.Errorf("%s: %v %v", store.Kind(), diff, err)
		}
	}
}
