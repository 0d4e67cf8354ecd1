package controlplane

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
)

// follow has the certificates of c reach a phase, as the agent does.
func follow(t *testing.T, c PKI, r rotation.Rotation) {
	t.Helper()
	rotate(t, c, r, r.Phase)
	if err := c.Reissue().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff, err := c.Certificates().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("phase %d: a run of master would change %v, %v", r.Phase, diff, err)
	}
}

// signersOf returns which authorities have signed the certificates: "old", "new"
// or both.
func signersOf(t *testing.T, c PKI, old map[string]*pki.Authority) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, l := range c.leaves() {
		pair, err := readLeaf(c.Files, l)
		if err != nil {
			t.Fatal(err)
		}
		if old[l.signer].Stale(pair, pki.Request{}, now) == "signed by another authority" {
			all["new"] = true
		} else {
			all["old"] = true
		}
	}
	return all
}

func TestRotationOfTheAuthorities(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	old := map[string]*pki.Authority{}
	for _, a := range authorities {
		signer, err := readSigner(c.Files, a.path)
		if err != nil {
			t.Fatal(err)
		}
		old[a.path] = signer
	}
	r := newRotation(t, c, Authorities)
	for _, want := range []struct {
		reach    rotation.Phase
		certs    int
		signs    string
		replaced bool // the API server
	}{{rotation.Accept, 2, "old", true}, {rotation.Use, 2, "new", false}, {rotation.Drop, 1, "new", true}} {
		before := apiServerPod(t, c)
		r.Phase = want.reach
		follow(t, c, r)
		for _, a := range authorities {
			if n := len(blocks(content(c.Files, a.path+".crt"))); n != want.certs {
				t.Errorf("phase %d: %s.crt has %d certificates, want %d", r.Phase, a.path, n, want.certs)
			}
		}
		if is := signersOf(t, c, old); len(is) != 1 || !is[want.signs] {
			t.Errorf("phase %d: certificates of %v, want %s", r.Phase, is, want.signs)
		}
		if (apiServerPod(t, c) != before) != want.replaced {
			t.Errorf("phase %d: the API server is replaced: %t, want %t", r.Phase, !want.replaced, want.replaced)
		}
		for _, path := range signers {
			if n := len(blocks(content(c.Files, signingFile(path)))); n != 1 {
				t.Errorf("phase %d: %s has %d certificates, and the controller manager wants one", r.Phase, signingFile(path), n)
			}
		}
		config, err := pki.ParseKubeconfig(content(c.Files, AdminConf))
		if n := len(blocks(config.Authority)); err != nil || n != want.certs {
			t.Errorf("phase %d: admin.conf trusts %d authorities, want %d (%v)", r.Phase, n, want.certs, err)
		}
	}
	if _, cert := servingCertificate(t, c); cert.CheckSignatureFrom(old[clusterCA].Cert) == nil {
		t.Error("the API server serves with a certificate of the old authority")
	}
	chain, err := pki.ParseCertificates(content(c.Files, apiserver+".crt"))
	if err != nil || len(chain) != 3 || chain[1].CheckSignatureFrom(old[clusterCA].Cert) != nil {
		t.Errorf("the chain of the API server has %d certificates, and none by which a client of the old authority accepts it: %v", len(chain), err)
	}
}

func TestAReissueMakesNothingThatWasRemoved(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	if err := c.Files.Remove(SuperAdminConf); err != nil {
		t.Fatal(err)
	}
	admin := content(c.Files, AdminConf)
	r := newRotation(t, c, Authorities)
	rotate(t, c, r, rotation.Accept)
	if err := c.Reissue().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Files.Exists(SuperAdminConf) {
		t.Error("super-admin.conf is back")
	}
	if bytes.Equal(content(c.Files, AdminConf), admin) {
		t.Error("admin.conf does not trust the new authority")
	}
}

// Control planes must not differ in the keys that they share.
func TestAllControlPlanesRotateToTheSameAuthorities(t *testing.T) {
	first, second := fresh(t), fresh(t)
	issue(t, first)
	shared, err := Shared(first.Files)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Files.Put(shared); err != nil {
		t.Fatal(err)
	}
	second.HostName, second.IP = "node-2", "10.0.0.2"
	issue(t, second)
	r := newRotation(t, first, Authorities)
	for _, r.Phase = range []rotation.Phase{rotation.Accept, rotation.Use, rotation.Drop} {
		follow(t, first, r)
		follow(t, second, r)
	}
	for _, file := range SharedFiles() {
		if strings.HasPrefix(file.Path, PKIDir) && !bytes.Equal(content(first.Files, file.Path), content(second.Files, file.Path)) {
			t.Errorf("%s differs", file.Path)
		}
	}
}
