package fetch

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestReachableTellsAwayFromSlow(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	must.NoError(t, closed.Close())
	unknown := httptest.NewTLSServer(nil)
	defer unknown.Close()
	for address, want := range map[string]string{
		"http://" + silent.Addr().String():  "",
		"https://" + silent.Addr().String(): "",
		"https://" + closed.Addr().String(): "unreachable",
		"https://no-such-host.invalid":      "host-unknown",
		unknown.URL:                         "unknown-authority",
	} {
		c, err := New(ClientOptions{Cache: t.TempDir(), Plain: []string{silent.Addr().String()}})
		must.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got := ""
		err = c.Reachable(ctx, address)
		for _, p := range step.Problems(err) {
			if got = p.Name; !p.Firm {
				t.Errorf("%s can be ignored", p.Name)
			}
		}
		if got != want {
			t.Errorf("%s: got %q (%v), want %q", address, got, err, want)
		}
	}
}
