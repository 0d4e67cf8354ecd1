package join

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// After a rotation, the API server also shows its authority signed by the old one.
// A host that joins gets the authority itself, and a hash of before is refused.
func TestTheAuthorityOfARotatedCluster(t *testing.T) {
	authority := func() *pki.Authority {
		a, err := pki.NewAuthority("kubernetes", nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	old, new := authority(), authority()
	cross, err := old.CrossSign(new.Cert)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := new.Issue(pki.Request{CommonName: "kube-apiserver", Hosts: []string{"10.0.0.1"}, WithAuthority: true, Cross: cross}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	chain, err := pki.ParseCertificates(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	found, err := verify("10.0.0.1:6443", "10.0.0.1", CAHash(new.Cert), chain)
	if err != nil || !found.Equal(new.Cert) {
		t.Errorf("another certificate than that of the authority: %v", err)
	}
	var problem *step.Problem
	if _, err := verify("10.0.0.1:6443", "10.0.0.1", CAHash(old.Cert), chain); !errors.As(err, &problem) || problem.Name != "ca-cert-hash" {
		t.Errorf("the hash of the old authority: %v", err)
	}
	bundle := slices.Concat(new.PEM().Cert, old.PEM().Cert)
	if !hasCA(bundle, CAHash(old.Cert)) || !hasCA(bundle, CAHash(new.Cert)) || hasCA(new.PEM().Cert, CAHash(old.Cert)) {
		t.Error("a host does not know its cluster by the hash of an authority that it trusts")
	}
}
