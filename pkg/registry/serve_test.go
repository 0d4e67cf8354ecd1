package registry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestServed pulls an image from a directory with the layout of containerd's
// content store: one file per blob, named by its digest.
func TestServed(t *testing.T) {
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		static.NewLayer([]byte("a layer"), types.OCIUncompressedLayer))
	must.NoError(t, err)
	dir := t.TempDir()
	digest := store(t, dir, img)
	handler, err := Served{Content: dir,
		Images: map[string]v1.Hash{"registry.k8s.io/e2e-test-images/kitten:1.8": digest}}.handler()
	must.NoError(t, err)
	server := httptest.NewServer(handler)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(address+"/e2e-test-images/kitten:1.8", name.Insecure)
	must.NoError(t, err)
	pulled, err := remote.Image(ref)
	must.NoError(t, err)
	if got, err := pulled.Digest(); err != nil || got != digest {
		t.Errorf("manifest %s, want %s: %v", got, digest, err)
	}
	if got := content(t, pulled); got != "a layer" {
		t.Errorf("layer %q", got)
	}
	put, err := http.NewRequest(http.MethodPut, server.URL+"/v2/e2e-test-images/kitten/manifests/1.9",
		strings.NewReader("{}"))
	must.NoError(t, err)
	if answer, err := http.DefaultClient.Do(put); err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("write to it: %v, %v", answer, err)
	}
	if other, err := http.Get(server.URL + "/v2/other/manifests/1"); err != nil ||
		other.StatusCode != http.StatusNotFound {
		t.Errorf("another image: %v, %v", other, err)
	}
}

func content(t *testing.T, img v1.Image) string {
	t.Helper()
	layers, err := img.Layers()
	must.NoError(t, err)
	stream, err := layers[0].Compressed()
	must.NoError(t, err)
	defer stream.Close()
	data, err := io.ReadAll(stream)
	must.NoError(t, err)
	return string(data)
}

func store(t *testing.T, dir string, img v1.Image) v1.Hash {
	t.Helper()
	manifest, err := img.RawManifest()
	must.NoError(t, err)
	config, err := img.RawConfigFile()
	must.NoError(t, err)
	digest, err := img.Digest()
	must.NoError(t, err)
	id, err := img.ConfigName()
	must.NoError(t, err)
	layers, err := img.Layers()
	must.NoError(t, err)
	layer, err := layers[0].Digest()
	must.NoError(t, err)
	for hash, data := range map[v1.Hash][]byte{digest: manifest, id: config, layer: []byte("a layer")} {
		must.NoError(t, os.MkdirAll(filepath.Join(dir, "blobs", hash.Algorithm), 0o755))
		must.Write(t, filepath.Join(dir, "blobs", hash.Algorithm, hash.Hex), data)
	}
	return digest
}
