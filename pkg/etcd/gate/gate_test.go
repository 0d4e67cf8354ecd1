package gate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// running is a gate without an etcd behind it.
type running struct {
	authority *pki.Authority
	address   string
}

func run(t *testing.T, ip string) running {
	t.Helper()
	authority, err := pki.NewAuthority("etcd-ca", nil, time.Now())
	must.NoError(t, err)
	r := running{authority, net.JoinHostPort(ip, "2382")}
	own := r.pair(t, pki.CertificateRequest{CommonName: "master", Hosts: []string{ip}})
	g := Gate{
		IP: ip, Readable: []string{network}, Leases: network + "subnets/",
		Serving: func() (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: r.pool(), MinVersion: tls.VersionTLS12},
				nil
		},
		Healthy: func(context.Context) error { return nil },
		Host: func(user string) string {
			if host, found := strings.CutPrefix(user, "flannel:"); found {
				return host
			}
			return ""
		},
	}
	go func() { _ = g.Serve(t.Context()) }()
	for try := 0; ; try++ {
		conn, err := net.Dial("tcp", r.address)
		if err == nil {
			conn.Close()
			return r
		}
		if try == 500 {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r running) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.authority.PEM().Cert)
	return pool
}

func (r running) pair(t *testing.T, request pki.CertificateRequest) tls.Certificate {
	t.Helper()
	made, err := r.authority.Issue(request, time.Now())
	must.NoError(t, err)
	pair, err := tls.X509KeyPair(made.Cert, made.Key)
	must.NoError(t, err)
	return pair
}

func (r running) client(certs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: r.pool(), Certificates: certs, MinVersion: tls.VersionTLS12}
}

func TestWhoMayCall(t *testing.T) {
	r := run(t, "127.8.0.1")
	get := func(path string, certs ...tls.Certificate) (int, error) {
		web := http.Client{Transport: &http.Transport{TLSClientConfig: r.client(certs...)}}
		answer, err := web.Get("https://" + r.address + path)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	worker := r.pair(t, pki.CertificateRequest{CommonName: "flannel:web", Client: true})
	if code, err := get("/health"); err == nil {
		t.Errorf("without a certificate: %d", code)
	}
	for path, want := range map[string]int{"/health": 200, "/v3/kv/range": 404, "/metrics": 404, "/version": 404} {
		if code, err := get(path, worker); code != want || err != nil {
			t.Errorf("%s: got %d, %v", path, code, err)
		}
	}
	for user, call := range map[string]func(*clientv3.Client) error{
		"root":        func(c *clientv3.Client) error { _, err := c.Get(t.Context(), network); return err },
		"flannel:web": func(c *clientv3.Client) error { _, err := c.MemberList(t.Context()); return err },
	} {
		config := clientv3.Config{
			Endpoints: []string{"https://" + r.address},
			TLS:       r.client(r.pair(t, pki.CertificateRequest{CommonName: user, Client: true})),
			Logger:    zap.NewNop(),
		}
		client, err := clientv3.New(config)
		must.NoError(t, err)
		defer client.Close()
		if err := call(client); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// TestAHostHasFewConnections: each one needs memory in the agent.
func TestAHostHasFewConnections(t *testing.T) {
	r := run(t, "127.8.0.2")
	for range 2 * hosts.Connections {
		conn, err := net.Dial("tcp", r.address)
		must.NoError(t, err)
		defer conn.Close()
		must.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		if _, err := conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
	t.Errorf("%d connections stay open", 2*hosts.Connections)
}

// TestMoreCertificatesGiveNoMoreAccess: a worker may request any number of certificates, each
// for another user of etcd.
func TestMoreCertificatesGiveNoMoreAccess(t *testing.T) {
	s := &server{
		hosts: map[string]*access{}, Gate: Gate{
			Etcd: "127.0.0.1:1",
			As:   func(string) (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil },
		},
	}
	defer s.close()
	a, _, err := s.access("web", "flannel:web:00000000")
	must.NoError(t, err)
	other, _, err := s.access("other", "flannel:other:00000001")
	must.NoError(t, err)
	for i := range 200 {
		user := fmt.Sprintf("flannel:web:%08x", i)
		now, conn, err := s.access("web", user)
		must.NoError(t, err)
		if now != a {
			t.Fatalf("%s has limits of its own", user)
		}
		if a.conns[user] != conn || conn.GetState() == connectivity.Shutdown {
			t.Fatalf("no connection of %s", user)
		}
	}
	if len(a.conns) > mostUsers || a.conns["flannel:web:000000c6"] == nil {
		t.Errorf("connections of %q", slices.Sorted(maps.Keys(a.conns)))
	}
	if other == a || len(other.conns) != 1 {
		t.Error("another host shares the limits")
	}
	former := "flannel:web:00000000" // of a client that still has it
	if _, conn, err := s.access("web", former); err != nil || a.conns[former] != conn || len(a.conns) > mostUsers {
		t.Errorf("an older user: %v, %d connections", err, len(a.conns))
	}
}
