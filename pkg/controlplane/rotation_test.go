package controlplane

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
)

// rotate has the files of c reach the phases, each twice as after an
// interruption.
func rotate(t *testing.T, c PKI, r rotation.Rotation, phases ...rotation.Phase) {
	t.Helper()
	for _, r.Phase = range phases {
		s := Rotate(c.Files, r)
		for range 2 {
			if err := s.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff, err := s.Check(t.Context()); err != nil || len(diff) > 0 {
				t.Fatalf("%s: after it %v, %v", s.Name, diff, err)
			}
		}
	}
}

func newRotation(t *testing.T, c PKI, subject string) rotation.Rotation {
	t.Helper()
	key, err := c.NewKey(subject)
	if err != nil {
		t.Fatal(err)
	}
	return rotation.Rotation{ID: subject, Subject: subject, New: key}
}

func encryptionKeyNames(t *testing.T, c PKI) (names []string) {
	t.Helper()
	_, keys, err := encryptionKeys(c.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range *keys {
		names = append(names, k.Name)
	}
	return names
}

func TestRotationOfTheEncryptionKey(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	r := newRotation(t, c, EncryptionKey)
	for _, phase := range []struct {
		reach rotation.Phase
		want  string
	}{{rotation.Accept, "key1 key2"}, {rotation.Use, "key2 key1"}, {rotation.Drop, "key2"}} {
		before := apiServerPod(t, c)
		rotate(t, c, r, phase.reach)
		if got := strings.Join(encryptionKeyNames(t, c), " "); got != phase.want {
			t.Errorf("phase %d: %s, want %s", phase.reach, got, phase.want)
		}
		if apiServerPod(t, c) == before {
			t.Errorf("phase %d: the API server is not replaced", phase.reach)
		}
	}
	if begins, err := EncryptedBy(r); err != nil || begins != "k8s:enc:secretbox:v1:key2:" {
		t.Errorf("%q, %v", begins, err)
	}
	if next := newRotation(t, c, EncryptionKey); !strings.Contains(string(next.New), `"key3"`) {
		t.Error("the next key has the name of an earlier one")
	}
}

func TestRotationOfTheServiceAccountKey(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	old, _ := c.Files.Read(accountPublic)
	r := newRotation(t, c, AccountKey)
	for _, phase := range []struct {
		reach rotation.Phase
		keys  int
		signs bool // with the new key
		first bool // is the old key
	}{{rotation.Accept, 2, false, true}, {rotation.Use, 2, true, false}, {rotation.Drop, 1, true, false}} {
		rotate(t, c, r, phase.reach)
		public, _ := c.Files.Read(accountPublic)
		key, _ := c.Files.Read(accountKey)
		if n := len(blocks(public)); n != phase.keys || strings.HasPrefix(string(public), string(old)) != phase.first {
			t.Errorf("phase %d: %d keys verify tokens:\n%s", phase.reach, n, public)
		}
		if string(key) == string(r.New) != phase.signs {
			t.Errorf("phase %d: another key signs tokens", phase.reach)
		}
		if diff, err := c.Certificates().Check(t.Context()); err != nil || len(diff) > 0 {
			t.Errorf("phase %d: a run of master would change %v, %v", phase.reach, diff, err)
		}
	}
}

func TestSignedBy(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	r := newRotation(t, c, AccountKey)
	public, err := pki.PublicKey(r.New)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(public)
	sum := sha256.Sum256(block.Bytes)
	token := func(kid string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"`+kid+`"}`)) + ".e30.c2ln"
	}
	for text, want := range map[string]bool{
		token(base64.RawURLEncoding.EncodeToString(sum[:])):  true,
		token("qLhCGcJ7MLtZcUb4GRgKDsqyfjTtDR6OQ3yWg294d2k"): false, "": false, "moon": false,
	} {
		if is, err := SignedBy(r, []byte(text)); err != nil || is != want {
			t.Errorf("%q: %t, %v", text, is, err)
		}
	}
}

func TestAnUnknownRotationIsRefused(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	before := snapshot(t, c)
	if err := Rotate(c.Files, rotation.Rotation{Subject: "moon"}).Apply(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "cannot rotate the moon") {
		t.Error(err)
	}
	for path, data := range snapshot(t, c) {
		if !slices.Equal(data, before[path]) {
			t.Errorf("%s was changed", path)
		}
	}
}

func apiServerPod(t *testing.T, c PKI) string {
	t.Helper()
	_, files, err := pods(c).podFiles()
	if err != nil {
		t.Fatal(err)
	}
	return string(files[0].Data)
}

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
		if old[l.signer].Stale(pair, pki.CertificateRequest{}, now) == "signed by another authority" {
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
		signer, err := Signer(c.Files, a.path)
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
				t.Errorf("phase %d: %s has %d certificates, and the controller manager wants one",
					r.Phase, signingFile(path), n)
			}
		}
		config, err := pki.ParseKubeconfig(content(c.Files, AdminConf))
		if n := len(blocks(config.Authority)); err != nil || n != want.certs {
			t.Errorf("phase %d: admin.conf trusts %d authorities, want %d (%v)", r.Phase, n, want.certs, err)
		}
	}
	if _, cert := servingCertificate(t, c); cert.CheckSignatureFrom(old[ClusterCA].Cert) == nil {
		t.Error("the API server serves with a certificate of the old authority")
	}
	chain, err := pki.ParseCertificates(content(c.Files, apiserver+".crt"))
	if err != nil || len(chain) != 3 || chain[1].CheckSignatureFrom(old[ClusterCA].Cert) != nil {
		t.Errorf("the chain of the API server has %d certificates, and none by which a client of the old authority "+
			"accepts it: %v", len(chain), err)
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
		if strings.HasPrefix(file.Path, PKIDir) &&
			!bytes.Equal(content(first.Files, file.Path), content(second.Files, file.Path)) {
			t.Errorf("%s differs", file.Path)
		}
	}
}
