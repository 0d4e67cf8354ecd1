package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestCredentialsWhileControlPlanesChange: the etcd of each control plane trusts the new or the
// former authority of its clients, until `master` has run on all of them.
func TestCredentialsWhileControlPlanesChange(t *testing.T) {
	former, now := authority(t, "former"), authority(t, "now")
	e := testContainer(t).Member.Client.Credentials
	made, err := former.Issue(pki.CertificateRequest{CommonName: "root", Client: true}, time.Now())
	must.NoError(t, err)
	for path, data := range map[string][]byte{e.CA: now.PEM().Cert, e.Cert: made.Cert, e.Key: made.Key} {
		must.NoError(t, e.Files.Write(path, data, 0o600))
	}
	if accepted(t, e, now, now) == nil {
		t.Error("a certificate of the former authority is accepted")
	}
	e.Issue = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		made, err := now.Issue(pki.CertificateRequest{CommonName: "root", Client: true}, time.Now())
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
func accepted(t *testing.T, access Credentials, serving, trusted *pki.Authority) error {
	t.Helper()
	made, err := serving.Issue(pki.CertificateRequest{CommonName: "etcd", Hosts: []string{"127.0.0.1"}}, time.Now())
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
			err = tls.Server(conn,
				&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert,
					ClientCAs: clients, MinVersion: tls.VersionTLS12}).Handshake()
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

// TestChangeOfASlowEtcd: a change is made again while etcd answers that it was too slow, and only then.
func TestChangeOfASlowEtcd(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.3.1", true)
	e := c.server("one", "127.3.3.1").Member.Client
	change := func(ctx context.Context, answers ...error) (calls int, err error) {
		err = e.Change(ctx, func(*clientv3.Client) error {
			calls++
			return answers[min(calls, len(answers))-1]
		})
		return calls, err
	}
	if calls, err := change(limited(t), rpctypes.ErrTimeout, fmt.Errorf("write: %w", rpctypes.ErrNoLeader),
		nil); calls != 3 || err != nil {
		t.Errorf("%d calls, %v", calls, err)
	}
	if calls, err := change(limited(t), rpctypes.ErrPermissionDenied, nil); calls != 1 ||
		!errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("a refusal: %d calls, %v", calls, err)
	}
	short := step.WithLimit(t.Context(), time.Millisecond)
	if calls, err := change(short, rpctypes.ErrTimeout); calls < 1 || !errors.Is(err, rpctypes.ErrTimeout) ||
		!strings.Contains(err.Error(), "not within") {
		t.Errorf("without end: %d calls, %v", calls, err)
	}
}
