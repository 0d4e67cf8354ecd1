package localregistry

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// limited runs a registry whose cache has a limit. It collects what the registry
// logs.
func limited(t *testing.T, dir string, limit int64, mirrors ...mirror.Mirror) (addr string, s *Server, log *lines) {
	t.Helper()
	log = &lines{}
	s, err := New(ServerSettings{Name: "localhost:5000", Dir: dir, Mirrors: mirrors, Cache: limit, Log: log.add})
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, s), s, log
}

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// String returns what was logged so far.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// layerOf returns the digest of the first layer of an image.
func layerOf(of v1.Image) digest.Digest {
	return digest.Digest(must(must(of.Layers())[0].Digest()).String())
}

// caches reports whether a registry keeps the first layer of an image. It waits for
// the blobs whose last bytes a node has already.
func caches(t *testing.T, s *Server, of v1.Image) bool {
	t.Helper()
	settled(t, s)
	_, err := s.store.cache.content.Info(t.Context(), layerOf(of))
	return err == nil
}

func settled(t *testing.T, s *Server) {
	t.Helper()
	c := s.store.cache
	for range 1000 {
		c.mu.Lock()
		claimed := c.claimed
		c.mu.Unlock()
		if claimed == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the cache waits for content that nobody stores")
}

const layerSize = 20_000 // a layer of random bytes is a little larger, a manifest much smaller

// TestLeastRecentlyUsed: the order of the use survives a restart.
func TestLeastRecentlyUsed(t *testing.T) {
	up, _ := upstreamOf(t, "docker.io", nil)
	one, two, three := pushLayer(t, up.Host, "a/b:1"), pushLayer(t, up.Host, "a/b:2"), pushLayer(t, up.Host, "a/b:3")
	dir := t.TempDir()
	addr, s, _ := limited(t, dir, 2.5*layerSize, up)
	expect(t, one, addr, "a/b:1", from("docker.io"))
	expect(t, two, addr, "a/b:2", from("docker.io"))
	settled(t, s)
	expect(t, one, addr, "a/b:1", from("docker.io")) // used again
	addr, s, log := limited(t, dir, 2.5*layerSize, up)
	expect(t, three, addr, "a/b:3", from("docker.io"))
	if !caches(t, s, one) || caches(t, s, two) || !caches(t, s, three) {
		t.Errorf("kept: %t, %t, %t", caches(t, s, one), caches(t, s, two), caches(t, s, three))
	}
	expect(t, two, addr, "a/b:2", from("docker.io")) // pulled again
	if log.String() != "" {
		t.Error(log)
	}
	settled(t, s)
	_, s, _ = limited(t, dir, 1.5*layerSize, up)
	if caches(t, s, one) || caches(t, s, three) || !caches(t, s, two) {
		t.Error("a lower limit removes nothing at the start")
	}
}

// pushLayer pushes an image of one layer of layerSize.
func pushLayer(t *testing.T, addr, image string) v1.Image {
	return pushLayers(t, addr, image, layerSize, 1)
}

func TestPushedImagesAreNotRemoved(t *testing.T) {
	up, _ := upstreamOf(t, "docker.io", nil)
	addr, s, _ := limited(t, t.TempDir(), 1.5*layerSize, up)
	both := pushLayer(t, up.Host, "a/b:0")
	expect(t, both, addr, "a/b:0", from("docker.io"))
	if err := remote.Write(ref(t, addr, "my/app:dev"), both); err != nil { // while the cache has its blobs
		t.Fatal(err)
	}
	large := push(t, addr, "my/app:large", 5*layerSize)
	for i := range 3 {
		image := fmt.Sprint("a/b:", i+1)
		expect(t, pushLayer(t, up.Host, image), addr, image, from("docker.io"))
	}
	if caches(t, s, both) {
		t.Error("the cache has all layers")
	}
	expect(t, both, addr, "my/app:dev")
	expect(t, large, addr, "my/app:large")
}

// TestRemovedWhileRead: a node reads a blob to its end that the cache removes.
func TestRemovedWhileRead(t *testing.T) {
	const size = 12 << 20 // more than the buffers of a connection
	up, _ := upstreamOf(t, "docker.io", nil)
	made := pushLayers(t, up.Host, "a/b:1", size, 1)
	addr, s, _ := limited(t, t.TempDir(), size+size/2, up)
	expect(t, made, addr, "a/b:1", from("docker.io"))
	blob, err := must(remote.Layer(ref(t, addr, "a/b@"+layerOf(made).String()).Context().Digest(layerOf(made).String()),
		from("docker.io"))).Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	if _, err := io.ReadFull(blob, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	expect(t, pushLayers(t, up.Host, "a/b:2", size, 1), addr, "a/b:2", from("docker.io"))
	if caches(t, s, made) {
		t.Error("the cache has both layers")
	}
	if _, err := io.Copy(io.Discard, blob); err != nil { // the client verifies it
		t.Error(err)
	}
}

// TestLargerThanTheCache: a node gets the blob, or all of it instead of a part, and
// no other content is removed for it.
func TestLargerThanTheCache(t *testing.T) {
	up, _ := upstreamOf(t, "docker.io", nil)
	small, large := pushLayer(t, up.Host, "a/b:small"), pushLayers(t, up.Host, "a/b:large", 5*layerSize, 2)
	dir := t.TempDir()
	addr, s, log := limited(t, dir, 2*layerSize, up)
	expect(t, small, addr, "a/b:small", from("docker.io"))
	expect(t, large, addr, "a/b:large", from("docker.io"))
	expectWhole(t, addr, large)
	if !caches(t, s, small) || caches(t, s, large) {
		t.Errorf("kept: %t, %t", caches(t, s, small), caches(t, s, large))
	}
	if text := log.String(); strings.Count(text, "\n") > 0 ||
		!strings.Contains(text, "do not fit into the 40000 bytes of --local-registry-cache") {
		t.Errorf("logged: %s", text)
	}
	if left := must(filepath.Glob(filepath.Join(dir, "*/ingest/*"))); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// expectWhole asks for a part of a layer that the registry cannot store.
func expectWhole(t *testing.T, addr string, of v1.Image) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+addr+"/v2/a/b/blobs/"+layerOf(of).String()+"?ns=docker.io", nil))
	r.Header.Set("Range", "bytes=1000-")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, answer.Body); err != nil || answer.StatusCode != http.StatusOK ||
		fmt.Sprintf("sha256:%x", sum.Sum(nil)) != layerOf(of).String() {
		t.Errorf("a part of what is not stored: %s, %v", answer.Status, err)
	}
}

// TestManyNodesAndASmallCache: all of them get what they pull.
func TestManyNodesAndASmallCache(t *testing.T) {
	var asked atomic.Int32
	up, _ := upstreamOf(t, "docker.io", func(_ http.ResponseWriter, r *http.Request) bool {
		asked.Add(1)
		return true
	})
	addr, s, _ := limited(t, t.TempDir(), 3*layerSize, up)
	var made []v1.Image
	for i := range 6 {
		made = append(made, pushLayer(t, up.Host, fmt.Sprint("a/b:", i)))
	}
	var nodes sync.WaitGroup
	for i := range 36 {
		nodes.Go(func() { expect(t, made[i%6], addr, fmt.Sprint("a/b:", i%6), from("docker.io")) })
	}
	nodes.Wait()
	settled(t, s)
	if _, used := s.store.cache.list(t.Context()); used > 3*layerSize {
		t.Errorf("the cache has %d bytes", used)
	}
}
