package localregistry

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

func ask(t *testing.T, method, url, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer
}

// TestChunks pushes a blob as Docker does, in two pieces.
func TestChunks(t *testing.T) {
	_, s := serve(t, t.TempDir())
	at := s.URL + ask(t, http.MethodPost, s.URL+"/v2/a/b/blobs/uploads/", "").Header.Get("Location")
	for _, c := range []struct {
		method, url, body, from string
		want                    int
	}{
		{http.MethodPatch, at, "abc", "0-2", http.StatusAccepted},
		{http.MethodPatch, at, "xyz", "7-9", http.StatusRequestedRangeNotSatisfiable},
		{http.MethodGet, at, "", "", http.StatusNoContent},
		{http.MethodPatch, at, "def", "3-5", http.StatusAccepted},
		{http.MethodPut, at + "?digest=" + digest.FromString("abcdef").String(), "", "", http.StatusCreated},
		{http.MethodGet, s.URL + "/v2/a/b/blobs/" + digest.FromString("abcdef").String(), "", "", http.StatusOK},
		{http.MethodPost, s.URL + "/v2/c/d/blobs/uploads/?from=a/b&mount=" + digest.FromString("abcdef").String(), "",
			"", http.StatusCreated},
		{http.MethodPost, s.URL + "/v2/c/d/blobs/uploads/?digest=" + digest.FromString("whole").String(), "whole", "",
			http.StatusCreated},
		{http.MethodPost, s.URL + "/v2/c/d/blobs/uploads/?digest=" + digest.FromString("other").String(), "whole!", "",
			http.StatusBadRequest},
		{http.MethodPut, s.URL + "/v2/a/b/manifests/v1", `{"layers":[]}`, "", http.StatusBadRequest},
		{http.MethodPut, s.URL + "/v2/a/b/manifests/" + digest.FromString("x").String(), `{"config":{}}`, "",
			http.StatusBadRequest},
		{http.MethodPut, s.URL + "/v2/a/b/manifests/.tag", `{"config":{}}`, "", http.StatusBadRequest},
		{http.MethodDelete, s.URL + "/v2/a/b/manifests/v1", "", "", http.StatusMethodNotAllowed},
		{http.MethodGet, s.URL + "/v2/a/%2e%2e/b/manifests/v1", "", "", http.StatusNotFound},
		{http.MethodGet, s.URL + "/v2/A/manifests/v1", "", "", http.StatusNotFound},
		{http.MethodGet, s.URL + "/v2/", "", "", http.StatusOK},
	} {
		header := []string{}
		if c.from != "" {
			header = []string{"Content-Range", c.from}
		}
		if got := ask(t, c.method, c.url, c.body, header...); got.StatusCode != c.want {
			t.Errorf("%s %s: %s, want %d", c.method, c.url, got.Status, c.want)
		}
	}
	part := ask(t, http.MethodGet, s.URL+"/v2/a/b/blobs/"+digest.FromString("abcdef").String(), "",
		"Range", "bytes=2-3")
	if part.StatusCode != http.StatusPartialContent || part.ContentLength != 2 {
		t.Errorf("a part: %s with %d bytes", part.Status, part.ContentLength)
	}
}

// TestBrowsersAreRefused sends what a web page could send to an own name that
// resolves to 127.0.0.1.
func TestBrowsersAreRefused(t *testing.T) {
	_, s := serve(t, t.TempDir())
	for _, header := range [][]string{{"Origin", "http://rebound.test:5000"}, {"Sec-Fetch-Site", "same-origin"}} {
		if got := ask(t, http.MethodPost, s.URL+"/v2/a/b/blobs/uploads/", "",
			header...); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", header[0], got.Status)
		}
	}
}

func TestAbandonedUploadsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	_, s := serve(t, dir)
	begin := func() string {
		at := s.URL + ask(t, http.MethodPost, s.URL+"/v2/a/b/blobs/uploads/", "").Header.Get("Location")
		ask(t, http.MethodPatch, at, "abc")
		return at
	}
	abandoned := begin()
	long := time.Now().Add(-2 * uploadLife)
	files := must(filepath.Glob(filepath.Join(dir, "content/ingest/*/*")))
	for _, file := range files {
		if strings.HasSuffix(file, "updatedat") {
			if err := os.WriteFile(file, must(long.MarshalText()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	running := begin()
	begin()
	for at, want := range map[string]int{abandoned: http.StatusNotFound, running: http.StatusNoContent} {
		if got := ask(t, http.MethodGet, at, ""); got.StatusCode != want {
			t.Errorf("%s, want %d", got.Status, want)
		}
	}
}

func TestAddressOfAnUpstream(t *testing.T) {
	for text, want := range map[string]string{
		"docker.io=docker.io": "index.docker.io", "quay.io=docker.io/quay": "index.docker.io/quay",
		"quay.io=a.test:5000/q": "a.test:5000/q",
	} {
		m, err := mirror.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := newUpstream(m); err != nil || u.registry.Address != want {
			t.Errorf("%s: %+v, %v", text, u.registry, err)
		}
	}
}

func TestThrough(t *testing.T) {
	var got []string
	for _, m := range Through("10.192.0.8", 5001,
		[]mirror.Mirror{{Of: "docker.io", Host: "a.test"}, {Of: "b.test", Host: "a.test"}}) {
		got = append(got, m.String())
	}
	want := []string{
		"localhost:5001=http://10.192.0.8:5000", "docker.io=http://10.192.0.8:5000",
		"registry.k8s.io=http://10.192.0.8:5000",
		"quay.io=http://10.192.0.8:5000", "ghcr.io=http://10.192.0.8:5000", "b.test=http://10.192.0.8:5000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
