package preflight

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	private "github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// withRegistry returns a host whose images come from a registry with a bundle
// of these versions.
func withRegistry(t *testing.T, pushed image.Versions) *local.Host {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	h := &local.Host{Files: host.Files{Root: t.TempDir()}, Config: config.Default(), Loads: &bundle.Broadcast{}, Downloads: &local.Downloads{},
		Registry: &private.Registry{Address: strings.TrimPrefix(server.URL, "http://"), Insecure: true, PlainHTTP: true}}
	must.NoError(t, h.UseCatalogue())
	manifest := digest.FromString("manifest")
	text, err := json.Marshal(bundle.Manifest{
		Format: 2, Versions: pushed,
		Images: []bundle.MultiPlatformImage{{Index: manifest, Platforms: map[string]bundle.PlatformImage{runtime.GOARCH: {Manifest: manifest, Config: manifest}}}},
		Frames: []bundle.Frame{{OffsetFromEnd: 1, CompressedSize: 1, Digest: manifest}}, Blobs: map[digest.Digest]bundle.Blob{manifest: {Size: 1}},
	})
	must.NoError(t, err)
	const kind = "application/vnd.kube-bootstrap.bundle."
	stored, err := mutate.Append(empty.Image, mutate.Addendum{Layer: static.NewLayer(text, kind+"v1+json")},
		mutate.Addendum{Layer: static.NewLayer([]byte("{}"), kind+"stored.v1+json")})
	must.NoError(t, err)
	repo, err := h.Registry.Repository(artifact.IndexPath)
	must.NoError(t, err)
	must.NoError(t, remote.Write(repo.Tag(pushed.Kubernetes), stored))
	return h
}

func TestResolveTakesTheVersionsOfTheRegistry(t *testing.T) {
	pushed, err := image.For("", image.Versions{})
	must.NoError(t, err)
	pushed.Etcd = "3.4.99"
	h := withRegistry(t, pushed)
	before := h.Versions
	resolved := h.Resolve(t.Context(), local.ControlPlane)
	looks := Plan(resolved, local.ControlPlane)
	for _, f := range (&step.Runner{}).Check(t.Context(), looks) { // they run at the same time: see -race
		if f.Step == "reach the registry" && f.Err != nil {
			t.Error(f.Err)
		}
	}
	if resolved.Versions.Etcd != pushed.Etcd || !strings.HasSuffix(resolved.Image("etcd"), ":v"+pushed.Etcd) {
		t.Errorf("etcd %s, %s", resolved.Versions.Etcd, resolved.Image("etcd"))
	}
	if h.Versions.Etcd != before.Etcd {
		t.Errorf("the host that was resolved has etcd %s now", h.Versions.Etcd)
	}
}

func TestWhoDoesNotAnswerIsAProblem(t *testing.T) {
	h := withRegistry(t, image.Versions{Kubernetes: "v1.1.1"})
	find := func(h *local.Host) (found []string) {
		for _, f := range (&step.Runner{}).Check(t.Context(), Plan(h, local.ControlPlane)) {
			if f.Step == "reach the registry" && f.Err != nil {
				found = append(found, f.Err.Error())
			}
		}
		return found
	}
	if found := find(h.Resolve(t.Context(), local.ControlPlane)); len(found) != 1 || !strings.Contains(found[0], h.Registry.Address) {
		t.Errorf("got %q", found)
	}
	h.Config.IgnorePreflight = slices.Concat(h.Config.IgnorePreflight, []string{"registry"})
	if found := find(h.Resolve(t.Context(), local.ControlPlane)); len(found) > 0 {
		t.Errorf("ignored, but got %q", found)
	}
}
