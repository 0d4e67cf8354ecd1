package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority("kubernetes", nil, now)
	must.NoError(t, err)
	return a
}

var server = CertificateRequest{
	CommonName: "kube-apiserver", Hosts: []string{"node-1", "10.0.0.1", "localhost"}, WithAuthority: true,
}

func TestIssuedCertificateVerifies(t *testing.T) {
	a := authority(t)
	pair, err := a.Issue(server, now)
	must.NoError(t, err)
	cert, err := ParseCertificate(pair.Cert)
	must.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	for _, name := range server.Hosts {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("verify for %s: %v", name, err)
		}
	}
	_, err = cert.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil {
		t.Error("a server's certificate must not serve a client")
	}
	if !cert.NotBefore.Before(now) || cert.NotAfter.Sub(now) != LeafLife {
		t.Errorf("valid from %s to %s", cert.NotBefore, cert.NotAfter)
	}
	if n := strings.Count(string(pair.Cert), "BEGIN CERTIFICATE"); n != 2 {
		t.Errorf("the chain has %d certificates, want leaf and authority", n)
	}
}

func TestStale(t *testing.T) {
	a, other := authority(t), authority(t)
	pair, _ := a.Issue(server, now)
	second, _ := a.Issue(server, now)
	moved := server
	moved.Hosts = []string{"node-1", "10.0.0.2", "localhost"}
	client := server
	client.Client = true
	renamed := server
	renamed.CommonName = "x"
	for name, c := range map[string]struct {
		a    *Authority
		pair Pair
		r    CertificateRequest
		at   time.Time
		want string
	}{
		"fits": {a, pair, server, now, ""},
		"fits, shuffled": {a, pair,
			CertificateRequest{CommonName: "kube-apiserver", Hosts: []string{"localhost", "node-1", "10.0.0.1"},
				WithAuthority: true}, now, ""},
		"soon":           {a, pair, server, now.Add(LeafLife*2/3 + time.Hour), "expires on 2027-03-01"},
		"not soon":       {a, pair, server, now.Add(LeafLife*2/3 - time.Hour), ""},
		"over":           {a, pair, server, now.Add(LeafLife + time.Hour), "expired on 2027-03-01"},
		"clock":          {a, pair, server, now.Add(-time.Hour), "check the clock"},
		"other signer":   {other, pair, server, now, "another authority"},
		"address":        {a, pair, moved, now, "serves 10.0.0.1"},
		"name":           {a, pair, renamed, now, "not for x"},
		"usage":          {a, pair, client, now, "other usages"},
		"wrong key":      {a, Pair{Cert: pair.Cert, Key: second.Key}, server, now, ErrKeyMismatch.Error()},
		"no certificate": {a, Pair{}, server, now, ErrNoCertificate.Error()},
		"no key":         {a, Pair{Cert: pair.Cert}, server, now, ErrNoKey.Error()},
	} {
		got := c.a.Stale(c.pair, c.r, c.at)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// openssl x509 -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256
func TestHash(t *testing.T) {
	a := authority(t)
	public, err := PublicKey(a.PEM().Key)
	must.NoError(t, err)
	block, _ := pem.Decode(public)
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(block.Bytes)); Hash(a.Cert) != want {
		t.Errorf("Hash = %s, want %s", Hash(a.Cert), want)
	}
}

func TestAuthorityFromItsKey(t *testing.T) {
	a := authority(t)
	leaf, _ := a.Issue(server, now)
	again, err := NewAuthority("kubernetes", a.PEM().Key, now.Add(time.Minute))
	must.NoError(t, err)
	cert, _ := ParseCertificate(leaf.Cert)
	if err := cert.CheckSignatureFrom(again.Cert); err != nil || Hash(again.Cert) != Hash(a.Cert) {
		t.Errorf("an authority made of the same key must be the same to all others: %v", err)
	}
}

func TestParseAuthorityErrors(t *testing.T) {
	a, other := authority(t), authority(t)
	leaf, _ := a.Issue(server, now)
	for _, c := range []struct {
		pair Pair
		want error
	}{
		{Pair{Cert: a.PEM().Cert, Key: other.PEM().Key}, ErrKeyMismatch},
		{Pair{Cert: []byte("x"), Key: a.PEM().Key}, ErrNoCertificate},
		{Pair{Cert: a.PEM().Cert, Key: []byte("x")}, ErrNoKey},
		{leaf, ErrNotAuthority},
	} {
		if _, err := ParseAuthority(c.pair); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	a := authority(t)
	pair, _ := a.Issue(CertificateRequest{CommonName: "admin", Client: true}, now)
	in := Kubeconfig{Server: "https://10.0.0.1:6443", Authority: a.PEM().Cert, User: "admin", Pair: pair}
	data, err := in.Encode()
	must.NoError(t, err)
	out, err := ParseKubeconfig(data)
	if err != nil || out.Server != in.Server || out.User != "admin" || string(out.Pair.Key) != string(pair.Key) ||
		string(out.Authority) != string(in.Authority) {
		t.Errorf("read back %+v, %v", out.Server, err)
	}
	if _, err := ParseKubeconfig([]byte("apiVersion: v1\nkind: Config\n")); !errors.Is(err, ErrNoContext) {
		t.Errorf("empty kubeconfig: %v", err)
	}
}
