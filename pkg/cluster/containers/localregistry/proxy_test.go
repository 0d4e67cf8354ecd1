package localregistry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// behindProxy is a variable of the process that TestProxy runs: the mirror from which
// it pulls.
const behindProxy = "TEST_BEHIND_PROXY"

// TestBehindProxy is run by TestProxy in a process of its own, because net/http reads
// the variables only once.
func TestBehindProxy(t *testing.T) {
	text := os.Getenv(behindProxy)
	if text == "" {
		return
	}
	addr, _, log := limited(t, t.TempDir(), DefaultCache, must(mirror.Parse(text)))
	_, err := pull(t, addr, "a/b:c", from("docker.io"))
	fmt.Printf("pulled: %v %s\n", err, log)
}

// TestProxy: the registry uses the proxy that the variables name, and no error shows
// its password.
func TestProxy(t *testing.T) {
	up, _ := upstreamOf(t, "docker.io", nil)
	push(t, up.Host, "a/b:c", 1000)
	forward := httputil.NewSingleHostReverseProxy(must(url.Parse("http://" + up.Host)))
	for _, c := range []struct {
		name, mirror, user, none string
		uses, works              bool
	}{
		{"uses it", "http://upstream.test", "me:hunter2@", "", true, true},
		{"is refused", "http://upstream.test", "", "", true, false},
		{"is refused for TLS", "upstream.test", "me:hunter2@", "", true, false},
		{"does not use it", "http://upstream.test", "me:hunter2@", "upstream.test", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if r.Header.Get("Proxy-Authorization") == "" || r.Method == http.MethodConnect {
					w.WriteHeader(http.StatusProxyAuthRequired)
					return
				}
				forward.ServeHTTP(w, r)
			}))
			defer proxy.Close()
			at := strings.Replace(proxy.URL, "://", "://"+c.user, 1)
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBehindProxy$")
			child.Env = append(os.Environ(), behindProxy+"=docker.io="+c.mirror, "HTTP_PROXY="+at, "HTTPS_PROXY="+at,
				"NO_PROXY="+c.none, "no_proxy=", "http_proxy=", "https_proxy=")
			out, err := child.CombinedOutput()
			text := string(out)
			if err != nil || (asked.Load() > 0) != c.uses || strings.Contains(text, "pulled: <nil>") != c.works ||
				strings.Contains(text, "hunter2") || strings.Contains(text, "MANIFEST_UNKNOWN") {
				t.Errorf("the proxy was asked %d times: %v %s", asked.Load(), err, text)
			}
		})
	}
}
