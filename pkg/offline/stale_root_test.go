//go:build root

package offline

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	served "github.com/google/go-containerregistry/pkg/registry"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestStaleImages: an image that has the right name, and is of another build
// than that in the registry or the main Docker, gives way to it.
func TestStaleImages(t *testing.T) {
	d, containerdSocket := dockertest.Start(t)
	pods := imagestore.Containerd(containerdSocket, "native", t.TempDir(), nil)
	current := onlyHyperkube(sourceOf(t))
	must.NoError(t, current.Load(imagestore.Docker(image.Main, d)).Apply(t.Context()))
	private := pushed(t, current.Path)
	for name, from := range map[string]Source{"main Docker": {Docker: d}, "registry": {Registry: private}} {
		t.Run(name, func(t *testing.T) {
			from.Versions, from.Images, from.Arch, from.Files = bundletest.Versions(t), current.Images, current.Arch,
				host.Files{Root: t.TempDir()}
			old := from
			old.Docker, old.Registry, old.Path = nil, nil, anotherBuild(t, current.Images[0])
			old.KeepImages = true // somebody else's
			must.NoError(t, old.Load(pods).Apply(t.Context()))
			load := from.Load(pods)
			if diff, err := load.Check(t.Context()); err != nil || len(diff) != 1 {
				t.Fatalf("with a stale image: %v %v", diff, err)
			}
			if err := from.Load(cutShort{pods}).Apply(t.Context()); !errors.Is(err, errCutShort) {
				t.Fatal(err)
			}
			if diff, err := load.Check(t.Context()); err != nil || len(diff) != 1 {
				t.Errorf("with a stale image, after a load that was cut short: %v %v", diff, err)
			}
			must.NoError(t, load.Apply(t.Context()))
			if diff, err := load.Check(t.Context()); err != nil || len(diff) > 0 {
				t.Errorf("then: %v %v", diff, err)
			}
		})
	}
}

// pushed returns a registry that contains the bundle at path.
func pushed(t *testing.T, path string) *registry.Registry {
	t.Helper()
	server := httptest.NewServer(served.New(served.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	private := &registry.Registry{
		Address: strings.TrimPrefix(server.URL, "http://") + "/k8s", Insecure: true, PlainHTTP: true,
	}
	if _, err := Push(t.Context(), path, private); err != nil {
		t.Fatal(err)
	}
	return private
}

// cutShort is a store whose loader ends before the first image is in.
type cutShort struct{ imagestore.Target }

var errCutShort = errors.New("cut short")

func (cutShort) Load(context.Context, func() io.ReadCloser) error { return errCutShort }

func onlyHyperkube(s Source) Source {
	s.Images = slices.DeleteFunc(s.Images, func(i image.Image) bool { return i.Name != "hyperkube" })
	return s
}

// anotherBuild is a bundle of an image with other content under the same name.
func anotherBuild(t *testing.T, img image.Image) string {
	t.Helper()
	return writeBundle(t, []image.Built{bundletest.Image(t, img, "amd64",
		rootfstest.Tar(t, "hyperkube=another build"))})
}
