//go:build root

package localregistry

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"
)

// disk returns a directory with a file system of its own.
func disk(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fill leaves no free space, and returns the file that takes it.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, rand.Reader); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return file
}

// readOnly makes a disk read-only, once no removed file of it is open: containerd
// (2.4) leaves one to the garbage collection.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	err := unix.EBUSY
	for range 100 {
		runtime.GC()
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(err)
}

// TestNodesPullWithoutSpace: the registry passes on what it cannot store, tells it
// once, and stores again as soon as there is space.
func TestNodesPullWithoutSpace(t *testing.T) {
	up, _ := upstreamOf(t, "docker.io", nil)
	made := pushLayers(t, up.Host, "a/b:1", 3<<20, 2)
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		want  string
	}{
		"too small for a layer":    {func(*testing.T, string) {}, "no space left on device"},
		"no byte left":             {func(t *testing.T, dir string) { fill(t, dir) }, "no space left on device"},
		"no file left":             {files, "no space left on device"},
		"read-only since a moment": {readOnly, "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := disk(t, "size=2m,nr_inodes=50")
			addr, s, log := limited(t, dir, DefaultCache, up)
			c.spoil(t, dir)
			var nodes sync.WaitGroup
			for range 4 {
				nodes.Go(func() { expect(t, made, addr, "a/b:1", from("docker.io")) })
			}
			nodes.Wait()
			expectWhole(t, addr, made)
			settled(t, s)
			if text := log.String(); strings.Count(text, "\n") > 0 || !strings.Contains(text, c.want) || !strings.Contains(text, "; ") {
				t.Errorf("logged: %s", text)
			}
			if left := must(filepath.Glob(filepath.Join(dir, "mirrored/ingest/*/data"))); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestStoresAgain(t *testing.T) {
	var pulled atomic.Int32
	up, _ := upstreamOf(t, "docker.io", func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			pulled.Add(1)
		}
		return true
	})
	made := pushLayers(t, up.Host, "a/b:1", 1<<20, 1)
	dir := disk(t, "size=4m")
	addr, s, _ := limited(t, dir, DefaultCache, up)
	filler := fill(t, dir)
	expect(t, made, addr, "a/b:1", from("docker.io"))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	expect(t, made, addr, "a/b:1", from("docker.io"))
	if !caches(t, s, made) {
		t.Error("the layer is not stored")
	}
	before := pulled.Load()
	expect(t, made, addr, "a/b:1", from("docker.io"))
	if pulled.Load() != before {
		t.Error("the layer is pulled again")
	}
}

// TestAFalseBlobWithoutSpace: no node accepts it, although the cache does not verify
// it.
func TestAFalseBlobWithoutSpace(t *testing.T) {
	var wrong atomic.Bool
	up, _ := upstreamOf(t, "docker.io", func(w http.ResponseWriter, r *http.Request) bool {
		if wrong.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 4<<20))
			return false
		}
		return true
	})
	made := pushLayers(t, up.Host, "a/b:1", 3<<20, 1)
	wrong.Store(true)
	addr, _, _ := limited(t, disk(t, "size=2m"), DefaultCache, up)
	answer, err := http.Get("http://" + addr + "/v2/a/b/blobs/" + layerOf(made).String() + "?ns=docker.io") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); n == answer.ContentLength && err == nil && answer.StatusCode == http.StatusOK {
		t.Error("a node cannot see that the blob is false")
	}
}

// TestPushWithoutSpace: the client gets the reason and the remedy at once, and the
// disk is as free as before.
func TestPushWithoutSpace(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		want  string
	}{
		"too small for the upload": {func(*testing.T, string) {}, "no space left on device; free disk space on the machine of the Docker engine"},
		"read-only":                {readOnly, "read-only file system; the log of the kernel"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := disk(t, "size=2m")
			addr, _, _ := limited(t, dir, DefaultCache)
			c.spoil(t, dir)
			expectDenied(t, addr, http.MethodPatch, c.want)
			expectDenied(t, addr, http.MethodPut, c.want)
			if left := must(filepath.Glob(filepath.Join(dir, "content/ingest/*"))); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
	dir := disk(t, "size=2m")
	addr, _, _ := limited(t, dir, DefaultCache)
	fill(t, dir)
	if err := remote.Put(ref(t, addr, "a/b:c"), must(random.Image(10, 1))); err == nil || !strings.Contains(err.Error(), "DENIED: the local registry cannot store this") {
		t.Errorf("a manifest: %v", err)
	}
}

// expectDenied uploads a blob that has no space.
func expectDenied(t *testing.T, addr, method, want string) {
	t.Helper()
	began := time.Now()
	at := "http://" + addr + ask(t, http.MethodPost, "http://"+addr+"/v2/a/b/blobs/uploads/", "").Header.Get("Location")
	r := must(http.NewRequestWithContext(t.Context(), method, at+"?digest=sha256:"+strings.Repeat("a", 64), io.LimitReader(rand.Reader, 64<<20)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := string(must(io.ReadAll(answer.Body)))
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, `"DENIED"`) || !strings.Contains(text, "cannot store this: ") || !strings.Contains(text, want) {
		t.Errorf("%s: %s %s", method, answer.Status, text)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%s: answered after %s", method, took)
	}
}
