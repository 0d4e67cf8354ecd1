package localregistry

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link/clients"
)

// brief is the patience of impatient.
const brief = time.Second

var short = clients.Limits{Silence: 100 * time.Millisecond, PerByte: time.Microsecond}

// impatient runs a registry that waits briefly for its clients, and reports each
// request that it has answered.
func impatient(t *testing.T) (addr string, answered chan string) {
	t.Helper()
	s, err := New(ServerSettings{Name: "localhost:5000", Dir: t.TempDir(), Cache: DefaultCache})
	if err != nil {
		t.Fatal(err)
	}
	s.clients.Silence = brief
	answered = make(chan string, 1000)
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { answered <- r.Method }()
		s.ServeHTTP(w, r)
	})), answered
}

// dial opens a connection and sends text.
func dial(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// expectAnswered fails if the registry still works for a client after a while.
func expectAnswered(t *testing.T, answered chan string, what string) {
	t.Helper()
	select {
	case <-answered:
	case <-time.After(20 * time.Second):
		t.Errorf("the registry waits for %s", what)
	}
}

// TestClientsThatStop: the registry does not wait for them.
func TestClientsThatStop(t *testing.T) {
	addr, answered := impatient(t)
	made := pushLayers(t, addr, "a/b:c", 12<<20, 1) // more than the buffers of a connection
	at := ask(t, http.MethodPost, "http://"+addr+"/v2/a/b/blobs/uploads/", "").Header.Get("Location")
	for len(answered) > 0 {
		<-answered
	}
	for what, text := range map[string]string{
		"an upload":   "PATCH " + at + " HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nabc",
		"a manifest":  "PUT /v2/a/b/manifests/c HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nabc",
		"its readers": "GET /v2/a/b/blobs/" + layerOf(made).String() + " HTTP/1.1\r\nHost: a.test\r\n\r\n",
	} {
		c := dial(t, addr, text)
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		expectAnswered(t, answered, what)
	}
}

// TestAConnectionIsUsedAgain: the limits of one request do not end the next one.
func TestAConnectionIsUsedAgain(t *testing.T) {
	addr, _ := impatient(t)
	c := dial(t, addr, "")
	answers := bufio.NewReader(c)
	for _, header := range []string{"", "Expect: 100-continue\r\n"} {
		if _, err := fmt.Fprintf(c, "PUT /v2/a/b/manifests/c HTTP/1.1\r\nHost: a.test\r\nContent-Length: 13\r\n%s\r\n",
			header); err != nil {
			t.Fatal(err)
		}
		if header != "" {
			if answer, err := http.ReadResponse(answers, nil); err != nil || answer.StatusCode != http.StatusContinue {
				t.Fatal(answer, err)
			}
		}
		if _, err := io.WriteString(c, `{"config":{}}`); err != nil {
			t.Fatal(err)
		}
		if answer, err := http.ReadResponse(answers, nil); err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatal(answer, err)
		}
		time.Sleep(brief + brief/2)
	}
}

// TestWorkAfterTheBody: the limit of a client is not one of the registry.
func TestWorkAfterTheBody(t *testing.T) {
	ended := make(chan error, 1)
	addr := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, r, end := short.Request(w, r)
		defer end()
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(300 * time.Millisecond)
		ended <- r.Context().Err()
	}))
	ask(t, http.MethodPut, "http://"+addr, "a body")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// drip is an answer that a client reads slowly.
type drip struct{ *httptest.ResponseRecorder }

func (drip) Write(p []byte) (int, error) {
	time.Sleep(5 * time.Millisecond)
	return len(p), nil
}

// TestAClientThatReadsAByteAtATime must not hold a blob that other nodes wait for.
func TestAClientThatReadsAByteAtATime(t *testing.T) {
	w, _, end := short.Request(drip{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil))
	defer end()
	for range 1000 {
		if _, err := w.Write([]byte("x")); err != nil {
			if !errors.Is(err, clients.ErrSlow) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("it may read for ever")
}

// TestManifestsNeedLittleMemory has many clients that stop in the middle of the
// upload of a large manifest, and many that request a manifest and read no answer.
func TestManifestsNeedLittleMemory(t *testing.T) {
	_, s := serve(t, t.TempDir())
	addr := strings.TrimPrefix(s.URL, "http://")
	large := `{"config":{},"annotations":{"a":"` + strings.Repeat("x", maxManifest-100) + `"}}`
	if got := ask(t, http.MethodPut, s.URL+"/v2/a/b/manifests/c", large); got.StatusCode != http.StatusCreated {
		t.Fatal(got.Status)
	}
	before := heap()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { dial(t, addr, "GET /v2/a/b/manifests/c HTTP/1.1\r\nHost: a.test\r\n\r\n") })
		all.Go(func() {
			dial(t, addr, fmt.Sprintf("PUT /v2/a/b/manifests/d HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%s", len(large), large[1000:]))
		})
	}
	all.Wait()
	if grown := heap() - before; grown > 20<<20 {
		t.Errorf("the memory has grown by %d MB", grown>>20)
	}
}

// heap returns the memory in use after a moment, in bytes.
func heap() int64 {
	time.Sleep(2 * time.Second)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
