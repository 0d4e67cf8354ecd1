package pki

import (
	"crypto/x509"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// The files of an authority are written one after the other: a program may read
// a bundle with the key of either authority.
func TestAuthorityOfABundle(t *testing.T) {
	old, new := authority(t), authority(t)
	bundles := [][]byte{
		slices.Concat(old.PEM().Cert, new.PEM().Cert),
		slices.Concat(new.PEM().Cert, old.PEM().Cert),
	}
	for _, bundle := range bundles {
		for _, want := range []*Authority{old, new} {
			got, err := ParseAuthority(Pair{Cert: bundle, Key: want.PEM().Key})
			must.NoError(t, err)
			if !got.Cert.Equal(want.Cert) || string(got.PEM().Cert) != string(bundle) {
				t.Error("the certificate of the other authority was read")
			}
			leaf, err := got.Issue(server, now)
			must.NoError(t, err)
			if reason := want.Stale(leaf, server, now); reason != "" {
				t.Errorf("what it signs is stale: %s", reason)
			}
		}
	}
}

func TestACrossSignedServerIsAcceptedByClientsOfEitherAuthority(t *testing.T) {
	old, new, third := authority(t), authority(t), authority(t)
	cross, err := old.CrossSign(new.Cert)
	must.NoError(t, err)
	request := server
	request.Cross = cross
	pair, err := new.Issue(request, now)
	must.NoError(t, err)
	if reason := new.Stale(pair, request, now); reason != "" {
		t.Errorf("it is stale at once: %s", reason)
	}
	plain, _ := new.Issue(server, now)
	if reason := new.Stale(plain, request, now); reason == "" {
		t.Error("a chain without the cross-signed authority is not stale")
	}
	chain, err := ParseCertificates(pair.Cert)
	if err != nil || len(chain) != 3 || !chain[2].Equal(new.Cert) {
		t.Fatalf("a chain of %d certificates, %v", len(chain), err)
	}
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	for _, c := range []struct {
		trusted *Authority
		ok      bool
	}{{old, true}, {new, true}, {third, false}} {
		roots := x509.NewCertPool()
		roots.AddCert(c.trusted.Cert)
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, DNSName: "node-1", CurrentTime: now,
		})
		if (err == nil) != c.ok {
			t.Errorf("accepted: %v, want %t", err, c.ok)
		}
	}
}

func TestVouched(t *testing.T) {
	old, new, third := authority(t), authority(t), authority(t)
	text := []byte("trust these")
	signature, err := old.SignText(text)
	must.NoError(t, err)
	for _, c := range []struct {
		name    string
		trusted []byte
		text    string
		want    bool
	}{
		{"the authority that signed", slices.Concat(new.PEM().Cert, old.PEM().Cert), string(text), true},
		{"other authorities", slices.Concat(new.PEM().Cert, third.PEM().Cert), string(text), false},
		{"another text", old.PEM().Cert, "trust those", false},
		{"no authority", nil, string(text), false},
	} {
		if got := Vouched(c.trusted, []byte(c.text), signature); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
