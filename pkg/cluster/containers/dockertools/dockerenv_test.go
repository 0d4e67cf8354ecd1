package dockertools

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func portAt(name, addr string) dockerTLS {
	return dockerTLS{node: topology.ClusterNode{Name: name, Addr: netip.MustParseAddr(addr)}}
}

func TestANodeWithoutARouteIsNamedWithItsAddress(t *testing.T) {
	err := portAt("k-worker-1", "224.0.0.1").reachable(t.Context()) // no TCP to a group
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "node-unreachable" ||
		!strings.Contains(err.Error(), "224.0.0.1:2376") {
		t.Errorf("got %v", err)
	}
	if err := portAt("", "127.0.0.1").reachable(t.Context()); err != nil { // nobody listens
		t.Error(err)
	}
}

func TestThePortAnswersOnlyHoldersOfACertificate(t *testing.T) {
	certs := dockerCerts{session.Selection{Name: "k", CacheDir: t.TempDir()}}
	client, err := certs.client()
	must.NoError(t, err)
	port := portAt("k-worker-1", "127.0.76.1")
	serveTLS(t, certs, port)
	if err := port.answers(t.Context(), client); err != nil {
		t.Error(err)
	}
	if port.answers(t.Context(), &tls.Config{RootCAs: client.RootCAs, MinVersion: tls.VersionTLS12}) == nil {
		t.Error("the port answers a client without a certificate")
	}
	if portAt("k-worker-2", "127.0.76.1").answers(t.Context(), client) == nil {
		t.Error("the port has the certificate of another node")
	}
}

// serveTLS answers on a port with the certificate of its node.
func serveTLS(t *testing.T, certs dockerCerts, port dockerTLS) {
	t.Helper()
	ca, err := certs.authority()
	must.NoError(t, err)
	pair, err := ca.Issue(pki.CertificateRequest{CommonName: port.node.Name, Hosts: []string{port.node.Name}},
		time.Now())
	must.NoError(t, err)
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	must.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(ca.Cert)
	listener, err := net.Listen("tcp", port.address())
	must.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = server.Listener.Close()
	server.Listener, server.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
}
