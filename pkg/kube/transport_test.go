package kube

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestRequestsShareAConnection: those with the same certificate do, also if they begin together. Those with
// a token do not.
func TestRequestsShareAConnection(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	must.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	pair := rest.TLSClientConfig{
		CAData: cert, CertData: cert, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
	const requests = 20
	for name, c := range map[string]struct {
		config rest.Config
		want   int32
	}{
		"certificate": {rest.Config{Host: server.URL, TLSClientConfig: pair}, 1},
		"token":       {rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: cert}, BearerToken: "a"}, requests},
	} {
		connections.Store(0)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				config := c.config
				client, err := clientFor(asKubeBootstrap(&config))
				if err == nil {
					var answer *http.Response
					if answer, err = client.Get(server.URL); err == nil {
						err = answer.Body.Close()
					}
				}
				if err != nil {
					t.Error(name, err)
				}
			})
		}
		all.Wait()
		if got := connections.Load(); got != c.want {
			t.Errorf("%s: %d connections, want %d", name, got, c.want)
		}
	}
}
