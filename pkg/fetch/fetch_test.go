package fetch

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// site serves one file, beside its checksum, as good or bad as it is told.
type site struct {
	*httptest.Server
	data []byte

	mu     sync.Mutex
	ranges []string
	next   []http.HandlerFunc // what becomes of the next requests for the file
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{data: make([]byte, 300_000)}
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(s.data)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ".sha512") {
		sum := sha512.Sum512(s.data)
		fmt.Fprintln(w, hex.EncodeToString(sum[:])+"  file")
		return
	}
	s.mu.Lock()
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	answer := s.whole
	if len(s.next) > 0 {
		answer, s.next = s.next[0], s.next[1:]
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *site) whole(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(s.data))
}

// cut sends the beginning and breaks off.
func (s *site) cut(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(cutting{w, 100_000}, r, "file", time.Time{}, bytes.NewReader(s.data))
}

type cutting struct {
	http.ResponseWriter
	after int
}

func (c cutting) Write(p []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(p[:min(len(p), c.after)])
	c.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func (s *site) client(t *testing.T, cache string, stall time.Duration) *Downloader {
	t.Helper()
	c, err := New(ClientOptions{Cache: cache, Stall: stall, Plain: []string{strings.TrimPrefix(s.URL, "http://")}})
	must.NoError(t, err)
	return c
}

func (s *site) fetch(ctx context.Context, c *Downloader) (string, error) {
	found, err := c.File(ctx, s.URL+"/file")
	if err != nil {
		return "", err
	}
	return found.Paths()[0], found.Fetch(ctx)
}

// same fails unless the path holds the file, and nothing half is left.
func (s *site) same(t *testing.T, cache, path string, err error) {
	t.Helper()
	must.NoError(t, err)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, s.data) {
		t.Errorf("%s is not the file: %v", path, err)
	}
	if left, _ := filepath.Glob(cache + "/downloads/partial/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGoesOnWhereItBrokeOff(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	s.next = []http.HandlerFunc{s.cut}
	path, err := s.fetch(t.Context(), s.client(t, cache, 0))
	s.same(t, cache, path, err)
	if len(s.ranges) != 2 || s.ranges[0] != "" || !strings.HasPrefix(s.ranges[1], "bytes=") {
		t.Errorf("asked for %q", s.ranges)
	}
	path, err = s.fetch(t.Context(), s.client(t, cache, 0))
	s.same(t, cache, path, err)
	if len(s.ranges) != 2 {
		t.Errorf("asked again for what is there: %q", s.ranges)
	}
}

func TestGoesOnWhereAnEarlierRunEnded(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	s.next = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(s.data[:100_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}}
	some := func(_ string, bytes, _ int64) {
		if bytes > 0 {
			cancel() // as Ctrl-C does
		}
	}
	if _, err := s.fetch(step.WithReporter(ctx, some), s.client(t, cache, 0)); err == nil {
		t.Fatal("it went on after it was cancelled")
	}
	path, err := s.fetch(t.Context(), s.client(t, cache, 0))
	s.same(t, cache, path, err)
	if last := s.ranges[len(s.ranges)-1]; !strings.HasPrefix(last, "bytes=") {
		t.Errorf("the second run asked for %q", s.ranges)
	}
}

func TestServersThatKnowNoRanges(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	s.next = []http.HandlerFunc{s.cut, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.data) }}
	path, err := s.fetch(t.Context(), s.client(t, cache, 0))
	s.same(t, cache, path, err)
}

func TestWaitsAsTheServerSays(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	s.next = []http.HandlerFunc{busy}
	var told []string
	ctx := step.WithReporter(t.Context(), func(text string, _, _ int64) { told = append(told, text) })
	path, err := s.fetch(ctx, s.client(t, cache, 0))
	s.same(t, cache, path, err)
	if !strings.Contains(strings.Join(told, "\n"), "answers 429 Too Many Requests; retry in 1s") {
		t.Errorf("it says %q", told)
	}
}

func TestRefusesToWaitForHours(t *testing.T) {
	s := newSite(t)
	s.next = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	}}
	_, err := s.fetch(t.Context(), s.client(t, t.TempDir(), 0))
	problem(t, err, "too-many-requests", "limits the rate of requests")
}

func TestSilence(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	s.next = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(s.data[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}}
	path, err := s.fetch(t.Context(), s.client(t, cache, 200*time.Millisecond))
	s.same(t, cache, path, err)
}

func TestWrongContent(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	evil := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(bytes.Repeat([]byte("evil"), 75_000)))
	}
	s.next = []http.HandlerFunc{evil}
	_, err := s.fetch(t.Context(), s.client(t, cache, 0))
	problem(t, err, "wrong-checksum", "/file does not match its checksum")
	if left, _ := filepath.Glob(cache + "/downloads/*/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	// A file that changed between two tries gets another chance.
	s.next = []http.HandlerFunc{s.cut, evil}
	path, err := s.fetch(t.Context(), s.client(t, cache, 0))
	s.same(t, cache, path, err)
}

func TestTwoFetchOnce(t *testing.T) {
	s, cache := newSite(t), t.TempDir()
	c := s.client(t, cache, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.fetch(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(s.ranges) != 1 {
		t.Errorf("asked for it %d times", len(s.ranges))
	}
}

func TestPlainHTTPIsRefusedUnasked(t *testing.T) {
	s := newSite(t)
	c, err := New(ClientOptions{Cache: t.TempDir()})
	must.NoError(t, err)
	_, err = s.fetch(t.Context(), c)
	problem(t, err, "plain-http", "write http:// before the name of the mirror")
}

func TestNothingThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c, err := New(ClientOptions{Cache: t.TempDir(), Plain: []string{strings.TrimPrefix(s.URL, "http://")}})
	must.NoError(t, err)
	_, err = c.File(t.Context(), s.URL+"/kubelet")
	problem(t, err, "not-found", "/kubelet.sha512")
}

func problem(t *testing.T, err error, name, text string) {
	t.Helper()
	found := step.Problems(err)
	if len(found) != 1 || found[0].Name != name || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want the problem %s with %q", err, name, text)
	}
}

// TestAnEndlessFileIsRefused: a server that states no size would fill the disk.
func TestAnEndlessFileIsRefused(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "partial"))
	must.NoError(t, err)
	defer file.Close()
	for size, refused := range map[int]bool{100: false, 101: true, 1000: true} {
		download := &transfer{
			blob: blob{url: "https://files.example.com/x"}, file: file, sum: sha512.New(), most: 100,
			progress: step.NewCounter(t.Context(), "x", 0),
		}
		must.NoError(t, download.restart())
		err := download.take(bytes.NewReader(make([]byte, size)))
		if (err != nil) != refused || refused &&
			(link.IsTransient(err) || !strings.Contains(err.Error(), "more than the 100 bytes")) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if info, err := file.Stat(); err != nil || refused && info.Size() > 0 {
			t.Errorf("%d bytes: %d are kept, %v", size, info.Size(), err)
		}
	}
}

// TestAFileOfAnyStatedSizeIsRefused: a server that states a size would fill the disk, too.
func TestAFileOfAnyStatedSizeIsRefused(t *testing.T) {
	var sent atomic.Int64
	s := newSite(t)
	s.next = []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(largestFile+1, 10))
		for part := make([]byte, 1<<20); sent.Load() < 64<<20; sent.Add(int64(len(part))) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}}
	cache := t.TempDir()
	found, err := s.client(t, cache, time.Second).File(t.Context(), s.URL+"/file")
	must.NoError(t, err)
	if err := found.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Errorf("%d bytes of an endless file were sent: %v", sent.Load(), err)
	}
}
