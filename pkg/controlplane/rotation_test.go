package controlplane

import (
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
	if err := Rotate(c.Files, rotation.Rotation{Subject: "moon"}).Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot rotate the moon") {
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
