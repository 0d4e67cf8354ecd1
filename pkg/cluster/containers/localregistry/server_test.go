package localregistry

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// serve runs a registry with its images in dir.
func serve(t *testing.T, dir string, mirrors ...mirror.Mirror) (addr string, s *httptest.Server) {
	t.Helper()
	r, err := New(ServerSettings{Name: "localhost:5000", Dir: dir, Mirrors: mirrors, Cache: DefaultCache})
	if err != nil {
		t.Fatal(err)
	}
	s = httptest.NewServer(r)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), s
}

// listen serves a handler with the limits of Serve.
func listen(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config = nodes.Server(h)
	s.Start()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// upstreamOf runs a registry, and returns it as the mirror of another one. begun
// is called for each request.
func upstreamOf(
	t *testing.T, of string, begun func(http.ResponseWriter, *http.Request) bool,
) (mirror.Mirror, *httptest.Server) {
	t.Helper()
	r, err := New(ServerSettings{Name: "localhost:5000", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if begun == nil || begun(w, q) {
			r.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(s.Close)
	return mirror.Mirror{Of: of, Host: strings.TrimPrefix(s.URL, "http://"), Plain: true}, s
}

// from makes a client ask as a node does that uses the registry as the mirror of
// another one.
func from(of string) remote.Option {
	return remote.WithTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("ns", of)
		r.URL.RawQuery = query.Encode()
		return http.DefaultTransport.RoundTrip(r)
	}))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func ref(t *testing.T, addr, image string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(addr+"/"+image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func push(t *testing.T, addr, image string, size int64) v1.Image {
	t.Helper()
	return pushLayers(t, addr, image, size, 2)
}

func pushLayers(t *testing.T, addr, image string, size, layers int64) v1.Image {
	t.Helper()
	made, err := random.Image(size, layers)
	if err == nil {
		err = remote.Write(ref(t, addr, image), made, remote.WithContext(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// pull reads all blobs of an image. The client verifies them.
func pull(t *testing.T, addr, image string, options ...remote.Option) (v1.Hash, error) {
	t.Helper()
	got, err := remote.Image(ref(t, addr, image), append(options, remote.WithContext(t.Context()))...)
	if err != nil {
		return v1.Hash{}, err
	}
	layers, err := got.Layers()
	if err != nil {
		return v1.Hash{}, err
	}
	for _, l := range layers {
		blob, err := l.Compressed()
		if err != nil {
			return v1.Hash{}, err
		}
		if _, err := io.Copy(io.Discard, blob); err != nil {
			return v1.Hash{}, err
		}
	}
	return got.Digest()
}

func expect(t *testing.T, want v1.Image, addr, image string, options ...remote.Option) {
	t.Helper()
	digest, err := want.Digest()
	if got, pulled := pull(t, addr, image, options...); pulled != nil || err != nil || got != digest {
		t.Errorf("%s is %s, want %s: %v", image, got, digest, pulled)
	}
}

func TestPushedImagesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	addr, first := serve(t, dir)
	one, two := push(t, addr, "my/app:dev", 1000), push(t, addr, "my/app:v2", 1000)
	expect(t, one, addr, "my/app:dev")
	expect(t, one, addr, "my/app:dev", from("localhost:5000"))
	third := push(t, addr, "my/app:dev", 2000)
	first.Close()
	addr, _ = serve(t, dir)
	expect(t, third, addr, "my/app:dev")
	expect(t, two, addr, "my/app:v2")
	if tags, err := remote.List(ref(t, addr, "my/app").Context()); err != nil || fmt.Sprint(tags) != "[dev v2]" {
		t.Errorf("tags %v, %v", tags, err)
	}
	if _, err := pull(t, addr, "library/none:v1"); err == nil || !strings.Contains(err.Error(), "MANIFEST_UNKNOWN") {
		t.Errorf("an image that nobody pushed: %v", err)
	}
}

func TestIndex(t *testing.T) {
	addr, _ := serve(t, t.TempDir())
	one := push(t, addr, "my/app:amd64", 100)
	index := mutate.AppendManifests(must(random.Index(10, 1, 0)), mutate.IndexAddendum{Add: one})
	if err := remote.WriteIndex(ref(t, addr, "my/app:all"), index); err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref(t, addr, "my/app:all"))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := must(got.Digest()), must(index.Digest()); a != b {
		t.Errorf("%s, want %s", a, b)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestPullsOnceAndWithoutTheUpstream(t *testing.T) {
	var blobs atomic.Int32
	mirror, remote := upstreamOf(t, "docker.io", func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
		}
		return true
	})
	mirror.Prefix = "hub"
	made := push(t, mirror.Host, "hub/library/busybox:1", 200_000)
	dir := t.TempDir()
	addr, first := serve(t, dir, mirror)
	var nodes sync.WaitGroup
	for range 4 {
		nodes.Go(func() { expect(t, made, addr, "library/busybox:1", from("docker.io")) })
	}
	nodes.Wait()
	if n := blobs.Load(); n != 2 {
		t.Errorf("%d blobs were pulled from the upstream", n)
	}
	if _, err := pull(t, addr, "library/busybox:1"); err == nil {
		t.Error("an image of docker.io appears among the pushed ones")
	}
	newer := push(t, mirror.Host, "hub/library/busybox:1", 1000)
	expect(t, newer, addr, "library/busybox:1", from("docker.io"))

	remote.Close()
	first.Close()
	addr, _ = serve(t, dir, mirror) // it starts while the upstream is off
	expect(t, newer, addr, "library/busybox:1", from("docker.io"))
	began := time.Now()
	expect(t, newer, addr, "library/busybox:1", from("docker.io"))
	if took := time.Since(began); took > freshLimit/2 {
		t.Errorf("an upstream that did not answer was asked again: %s", took)
	}
	digest := must(made.Digest())
	expect(t, made, addr, "library/busybox@"+digest.String(), from("docker.io"))
}

func TestWhatTheUpstreamRefuses(t *testing.T) {
	mirror, _ := upstreamOf(t, "quay.io", nil)
	addr, _ := serve(t, t.TempDir(), mirror)
	for image, want := range map[string]string{
		"no/such:v1": "MANIFEST_UNKNOWN", "no/such@sha256:" + strings.Repeat("a", 64): "MANIFEST_UNKNOWN",
	} {
		if _, err := pull(t, addr, image, from("quay.io")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", image, err)
		}
	}
	if _, err := pull(t, addr, "a/b:c", from("example.com")); err == nil ||
		!strings.Contains(err.Error(), "NAME_UNKNOWN") {
		t.Errorf("a registry that is no upstream: %v", err)
	}
	if err := remote.Write(ref(t, addr, "a/b:c"), must(random.Image(10, 1)), from("quay.io")); err == nil ||
		!strings.Contains(err.Error(), "UNSUPPORTED") {
		t.Errorf("push to an upstream: %v", err)
	}
}

// TestAFalseBlob: it is not stored, and no node accepts it.
func TestAFalseBlob(t *testing.T) {
	var wrong atomic.Bool
	mirror, _ := upstreamOf(t, "ghcr.io", func(w http.ResponseWriter, r *http.Request) bool {
		if wrong.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 5000))
			return false
		}
		return true
	})
	made := push(t, mirror.Host, "a/b:c", 3000)
	addr, _ := serve(t, t.TempDir(), mirror)
	wrong.Store(true)
	if _, err := pull(t, addr, "a/b:c", from("ghcr.io")); err == nil {
		t.Error("a false blob was served")
	}
	wrong.Store(false)
	expect(t, made, addr, "a/b:c", from("ghcr.io"))
}
