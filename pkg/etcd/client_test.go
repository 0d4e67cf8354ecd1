package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAccessWhileControlPlanesChange: the etcd of each control plane trusts the new or the
// former authority of its clients, until `master` has run on all of them.
func TestAccessWhileControlPlanesChange(t *testing.T) {
	former, now := authority(t, "former"), authority(t, "now")
	e := testServer(t).Access
	made, err := former.Issue(pki.Request{CommonName: "root", Client: true}, time.Now())
	must.NoError(t, err)
	for path, data := range map[string][]byte{e.CA: now.PEM().Cert, e.Cert: made.Cert, e.Key: made.Key} {
		must.NoError(t, e.Files.Write(path, data, 0o600))
	}
	if accepted(t, e, now, now) == nil {
		t.Error("a certificate of the former authority is accepted")
	}
	e.Issue = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		made, err := now.Issue(pki.Request{CommonName: "root", Client: true}, time.Now())
		must.NoError(t, err)
		pair, err := tls.X509KeyPair(made.Cert, made.Key)
		return &pair, err
	}
	for name, trusted := range map[string]*pki.Authority{"former": former, "new": now} {
		if err := accepted(t, e, now, trusted); err != nil {
			t.Errorf("an etcd that trusts the %s authority: %v", name, err)
		}
	}
}

func authority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	made, err := pki.NewAuthority(name, nil, time.Now())
	must.NoError(t, err)
	return made
}

// accepted returns an error unless a server accepts the certificate of access.
func accepted(t *testing.T, access Access, serving, trusted *pki.Authority) error {
	t.Helper()
	made, err := serving.Issue(pki.Request{CommonName: "etcd", Hosts: []string{"127.0.0.1"}}, time.Now())
	must.NoError(t, err)
	pair, err := tls.X509KeyPair(made.Cert, made.Key)
	must.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(trusted.PEM().Cert)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12}).Handshake()
		}
		done <- err
	}()
	config, err := access.tls()
	must.NoError(t, err)
	conn, err := tls.Dial("tcp", listener.Addr().String(), config)
	if err == nil {
		defer conn.Close()
	}
	return <-done
}
