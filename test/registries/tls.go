package registries

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// ServeTLS serves at an address until the test ends.
func ServeTLS(t *testing.T, ip string, pair tls.Certificate, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Listener.Close()
	var err error
	s.Listener, err = net.Listen("tcp", ip+":0")
	must.NoError(t, err)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
