package localregistry

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// TestANodeThatReadsNothing: it does not delay another node.
func TestANodeThatReadsNothing(t *testing.T) {
	up, _ := upstreamOf(t, "docker.io", nil)
	made := push(t, up.Host, "library/large:1", 12<<20) // more than the buffers of a connection
	r, err := New(ServerSettings{
		Name: "localhost:5000", Dir: t.TempDir(), Mirrors: []mirror.Mirror{up}, Cache: DefaultCache,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.clients.Silence = 100 * time.Millisecond
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	addr := strings.TrimPrefix(s.URL, "http://")
	layer := must(must(made.Layers())[0].Digest())
	still, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer still.Close()
	if err := still.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(still, "GET /v2/library/large/blobs/%s?ns=docker.io HTTP/1.1\r\nHost: %s\r\n\r\n", layer, addr)
	if _, err := still.Read(make([]byte, 1)); err != nil { // it has begun to pull
		t.Fatal(err)
	}
	pulled := make(chan error, 1)
	go func() {
		_, err := pull(t, addr, "library/large:1", from("docker.io"))
		pulled <- err
	}()
	select {
	case err := <-pulled:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the second node waits for the first one")
	}
}

// TestANodeThatGivesUp: the registry still asks the upstream for the next node.
func TestANodeThatGivesUp(t *testing.T) {
	var slow atomic.Bool
	mirror, _ := upstreamOf(t, "docker.io", func(_ http.ResponseWriter, r *http.Request) bool {
		if slow.Load() && strings.Contains(r.URL.Path, "/manifests/") {
			<-r.Context().Done()
		}
		return true
	})
	addr, _ := serve(t, t.TempDir(), mirror)
	expect(t, push(t, mirror.Host, "a/b:c", 100), addr, "a/b:c", from("docker.io"))
	newer := push(t, mirror.Host, "a/b:c", 200)
	slow.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := remote.Image(ref(t, addr, "a/b:c"), from("docker.io"), remote.WithContext(ctx)); err == nil {
		t.Fatal("the upstream has answered")
	}
	time.Sleep(200 * time.Millisecond) // the registry notices it
	slow.Store(false)
	expect(t, newer, addr, "a/b:c", from("docker.io"))
}

func TestALayerIsNotAManifest(t *testing.T) {
	addr, s := serve(t, t.TempDir())
	made := push(t, addr, "a/b:c", maxManifest+1)
	layer := must(must(made.Layers())[0].Digest())
	if got := ask(t, http.MethodGet, s.URL+"/v2/a/b/manifests/"+layer.String(),
		""); got.StatusCode != http.StatusNotFound {
		t.Errorf("a layer as a manifest: %s", got.Status)
	}
}
