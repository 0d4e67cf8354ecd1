package artifact

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// wire counts the bytes of all blobs that are sent to and received from a
// registry.
type wire struct{ in, out atomic.Int64 }

type countedReader struct {
	io.ReadCloser
	count *atomic.Int64
}

func (c countedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.count.Add(int64(n))
	return n, err
}

type countedWriter struct {
	http.ResponseWriter
	count *atomic.Int64
}

func (c countedWriter) Write(p []byte) (int, error) {
	c.count.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func counted(t *testing.T) (*registry.Registry, *wire) {
	t.Helper()
	w, real := &wire{}, served.New(served.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		request.Body = countedReader{request.Body, &w.in}
		real.ServeHTTP(countedWriter{answer, &w.out}, request)
	}))
	t.Cleanup(server.Close)
	return &registry.Registry{
		Address: strings.TrimPrefix(server.URL, "http://") + "/k8s", Insecure: true, PlainHTTP: true,
	}, w
}

// withRealPrograms returns a bundle whose images contain part of a real
// program, so that their layers compress like real ones.
func withRealPrograms(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must.NoError(t, err)
	program := must.Read(t, path)
	const piece = image.ManifestLimit + 1<<20
	var built []image.Built
	for i, img := range image.Catalogue(bundletest.Versions(t), "")[:3] {
		built = append(built, bundletest.Image(t, img, "amd64", rootfstest.Tar(t, "shared=of all"),
			rootfstest.Tar(t, img.Name+"="+string(program[i*piece:(i+1)*piece]))))
	}
	b, err := bundle.NewBuilder(bundletest.Versions(t), built)
	must.NoError(t, err)
	b.Cache = t.TempDir()
	bundlePath := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, b.Write(t.Context(), bundlePath))
	return bundlePath
}

func opened(t *testing.T, path string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Open(path)
	must.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func TestARegistryGetsAndGivesCompressedLayers(t *testing.T) {
	path := withRealPrograms(t)
	info, err := os.Stat(path)
	must.NoError(t, err)
	most := info.Size() * 11 / 10
	to, w := counted(t)
	pushed, err := Push(t.Context(), opened(t, path), to)
	if err != nil || len(pushed) != 3 {
		t.Fatalf("%v %v", pushed, err)
	}
	if sent := w.in.Load(); sent > most {
		t.Errorf("push sent %d bytes of a bundle that has %d", sent, info.Size())
	}
	w.in.Store(0)
	if again, err := Push(t.Context(), opened(t, path), to); err != nil || len(again) != 3 || again[0] != pushed[0] ||
		w.in.Load() > 0 {
		t.Errorf("the same again sent %d bytes: %v %v", w.in.Load(), again, err)
	}
	w.out.Store(0)
	b, err := Open(t.Context(), to, bundletest.Versions(t).Kubernetes)
	must.NoError(t, err)
	archive := b.Archive(t.Context(), b.Manifest.Images, "amd64").Open() // verifies the digest of each blob
	defer archive.Close()
	if _, err := io.Copy(io.Discard, archive); err != nil {
		t.Error(err)
	}
	if got := w.out.Load(); got > most {
		t.Errorf("a host reads %d bytes of a bundle that has %d", got, info.Size())
	}
}

// TestPushedImagesCanBePulled: clients that pull get images with compressed
// layers and with the bundle's config, and so its image ID.
func TestPushedImagesCanBePulled(t *testing.T) {
	path := withRealPrograms(t)
	to, _ := counted(t)
	pushed, err := Push(t.Context(), opened(t, path), to)
	must.NoError(t, err)
	b := opened(t, path)
	for i, e := range b.Manifest.Images {
		ref, err := name.ParseReference(pushed[i].Ref, name.Insecure)
		must.NoError(t, err)
		img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
		must.NoError(t, err)
		id, err := img.ConfigName()
		if err != nil || id.String() != e.Platforms["amd64"].Config.String() {
			t.Errorf("%s: ID %s, %v", e.Ref, id, err)
		}
		layers, err := img.Layers()
		must.NoError(t, err)
		for j, layer := range layers {
			kind, _ := layer.MediaType()
			plain, err := layer.Uncompressed()
			must.NoError(t, err)
			d, _, err := v1.SHA256(plain)
			plain.Close()
			if err != nil || kind != types.OCILayerZStd || d.String() != e.Platforms["amd64"].Layers[j].String() {
				t.Errorf("%s: layer %d is %s of kind %s, %v", e.Ref, j, d, kind, err)
			}
		}
	}
}
