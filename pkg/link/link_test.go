package link

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]struct {
		wait time.Duration
		told bool
	}{
		"3":                             {3 * time.Second, true},
		"0":                             {0, true},
		"Fri, 01 May 2026 12:00:07 GMT": {7 * time.Second, true},
		"Fri, 01 May 2026 11:00:00 GMT": {0, true},
		"-1":                            {}, "": {}, "soon": {},
	} {
		wait, told := retryAfter(&http.Response{Header: http.Header{"Retry-After": {header}}}, now)
		if wait != want.wait || told != want.told {
			t.Errorf("%q: %s %v, want %s %v", header, wait, told, want.wait, want.told)
		}
	}
}

// busyOnce refuses the first request, and says what came with the others.
func busyOnce(t *testing.T, status int, header string) (url string, bodies *[]string) {
	t.Helper()
	bodies = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		*bodies = append(*bodies, string(data))
		if len(*bodies) == 1 {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, bodies
}

func TestPatientSendsABodyAgain(t *testing.T) {
	url, bodies := busyOnce(t, http.StatusTooManyRequests, "0")
	resp, err := (&http.Client{Transport: Retry{Next: http.DefaultTransport}}).Post(url, "text/plain",
		strings.NewReader("a manifest"))
	must.NoError(t, err)
	defer resp.Body.Close()
	if got := strings.Join(*bodies, "|"); resp.StatusCode != http.StatusOK || got != "a manifest|a manifest" {
		t.Errorf("%s after %q", resp.Status, got)
	}
}

func TestPatientLeavesAStreamToItsCaller(t *testing.T) {
	url, bodies := busyOnce(t, http.StatusTooManyRequests, "0")
	stream := io.MultiReader(bytes.NewReader([]byte("a blob"))) // of no kind that can be had again
	resp, err := (&http.Client{Transport: Retry{Next: http.DefaultTransport}}).Post(url, "text/plain", stream)
	must.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || len(*bodies) != 1 {
		t.Errorf("%s after %q", resp.Status, *bodies)
	}
}

func TestPatientDoesNotRepeatUnbidden(t *testing.T) {
	url, bodies := busyOnce(t, http.StatusBadGateway, "")
	resp, err := (&http.Client{Transport: Retry{Next: http.DefaultTransport}}).Post(url, "text/plain",
		strings.NewReader("a manifest"))
	must.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadGateway || len(*bodies) != 1 {
		t.Errorf("%s after %q", resp.Status, *bodies)
	}
}

func TestSilenceBeforeAndWithin(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/within" {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	client := &http.Client{Transport: IdleTimeout{http.DefaultTransport, 100 * time.Millisecond}}
	for _, path := range []string{"/before", "/within"} {
		resp, err := client.Get(s.URL + path)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		var stalled *StalledError
		if !errors.As(err, &stalled) || !IsTransient(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestASlowReaderIsNotASilentServer: a store that is busy with what it has read
// must not end the transfer.
func TestASlowReaderIsNotASilentServer(t *testing.T) {
	const limit = 500 * time.Millisecond
	blob := make([]byte, 4<<20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(blob) }))
	defer s.Close()
	resp, err := (&http.Client{Transport: IdleTimeout{http.DefaultTransport, limit}}).Get(s.URL)
	must.NoError(t, err)
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * limit)
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != len(blob)-1000 {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}
