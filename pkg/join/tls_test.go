package join

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// After a rotation, the API server also shows its authority signed by the old one.
// A host that joins gets the authority itself, and a hash of before is refused.
func TestTheAuthorityOfARotatedCluster(t *testing.T) {
	authority := func() *pki.Authority {
		a, err := pki.NewAuthority("kubernetes", nil, time.Now())
		must.NoError(t, err)
		return a
	}
	old, new := authority(), authority()
	cross, err := old.CrossSign(new.Cert)
	must.NoError(t, err)
	pair, err := new.Issue(pki.CertificateRequest{CommonName: "kube-apiserver", Hosts: []string{"10.0.0.1"},
		WithAuthority: true, Cross: cross}, time.Now())
	must.NoError(t, err)
	chain, err := pki.ParseCertificates(pair.Cert)
	must.NoError(t, err)
	found, err := verify("10.0.0.1:6443", "10.0.0.1", pki.Hash(new.Cert), chain)
	if err != nil || !found.Equal(new.Cert) {
		t.Errorf("another certificate than that of the authority: %v", err)
	}
	var problem *step.Problem
	if _, err := verify("10.0.0.1:6443", "10.0.0.1", pki.Hash(old.Cert), chain); !errors.As(err, &problem) ||
		problem.Name != "ca-cert-hash" {
		t.Errorf("the hash of the old authority: %v", err)
	}
	bundle := slices.Concat(new.PEM().Cert, old.PEM().Cert)
	if !hasCA(bundle, pki.Hash(old.Cert)) || !hasCA(bundle, pki.Hash(new.Cert)) ||
		hasCA(new.PEM().Cert, pki.Hash(old.Cert)) {
		t.Error("a host does not know its cluster by the hash of an authority that it trusts")
	}
}
