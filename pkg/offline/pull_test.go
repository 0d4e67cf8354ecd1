package offline

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/offlinetest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestAPullForThisHostLeavesOnlyTheBundle(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	v, err := image.For("", image.Versions{})
	must.NoError(t, err)
	sites := offlinetest.Start(t, v, runtime.GOARCH)
	dir := t.TempDir()
	o, err := PullOptions{
		Versions: v, Addons: []string{}, Output: filepath.Join(dir, "bundle.tar.zst"), Work: filepath.Join(dir, "pull"),
		Quick: true,
	}.From(sites.Settings())
	must.NoError(t, err)
	begun, err := NewPull(o)
	must.NoError(t, err)
	must.NoError(t, begun.Reachable(t.Context()))
	must.NoError(t, begun.LookUp(t.Context()))
	whole := begun.Bytes()
	must.NoError(t, begun.all[1].found.Fetch(t.Context())) // and then the run is killed
	p, err := NewPull(o)
	must.NoError(t, err)
	must.NoError(t, p.LookUp(t.Context()))
	if rest := p.Bytes(); rest <= 0 || rest >= whole {
		t.Errorf("%d bytes are left of %d", rest, whole)
	}
	blobs := sites.Asked("GET /v2/coreos/etcd/blobs/")
	must.NoError(t, (&step.Runner{}).Do(t.Context(), p.Plan()))
	if blobs == 0 || sites.Asked("GET /v2/coreos/etcd/blobs/") != blobs {
		t.Errorf("etcd was fetched again: %d requests, then %d", blobs, sites.Asked("GET /v2/coreos/etcd/blobs/"))
	}
	if sites.Asked("GET /v2/metallb") != 0 {
		t.Error("images of an addon that nobody wants were pulled")
	}
	left, err := os.ReadDir(dir)
	must.NoError(t, err)
	for _, entry := range left {
		if name := entry.Name(); name != "bundle.tar.zst" && !strings.HasSuffix(name, ".lock") {
			t.Errorf("the pull leaves %s", name)
		}
	}
	if cached, _ := os.ReadDir(os.Getenv("KUBE_BOOTSTRAP_CACHE")); len(cached) > 0 {
		t.Errorf("the pull leaves %v in the cache", cached)
	}
	s := Source{Versions: v, Images: image.Catalogue(v, ""), Arch: runtime.GOARCH, Files: host.Files{Root: t.TempDir()}}
	must.NoError(t, s.Fits(o.Output))
}

func TestABundleOfTheCacheIsKept(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	v, err := image.For("", image.Versions{})
	must.NoError(t, err)
	s := Source{Versions: v, Images: image.Catalogue(v, ""), Arch: runtime.GOARCH, Files: host.Files{Root: t.TempDir()}}
	if path := s.Cached(); path != "" {
		t.Errorf("the empty cache has %s", path)
	}
	o, err := PullOptions{Versions: v, Quick: true}.From(offlinetest.Start(t, v, runtime.GOARCH).Settings())
	must.NoError(t, err)
	p, err := NewPull(o)
	must.NoError(t, err)
	must.NoError(t, (&step.Runner{}).Do(t.Context(), p.Plan()))
	path := s.Cached()
	if path != p.Output {
		t.Fatalf("the cache has %q, not %q", path, p.Output)
	}
	kept := s.SaveBundle(path)
	must.NoError(t, (&step.Runner{}).Do(t.Context(), step.Plan{{kept}}))
	must.NoError(t, s.Fits(s.Files.Path(HostPath)))
	must.NoError(t, errors.Join(kept.Undo(t.Context()), kept.Undo(t.Context())))
	if s.Files.Exists(HostPath) {
		t.Error("Undo leaves the bundle")
	}
}
