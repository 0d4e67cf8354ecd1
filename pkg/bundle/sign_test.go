package bundle

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// keys makes the files that openssl would.
func keys(t *testing.T) (private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	must.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must.NoError(t, err)
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	must.NoError(t, err)
	dir := t.TempDir()
	private, public = filepath.Join(dir, "key.pem"), filepath.Join(dir, "key.pub")
	err = errors.Join(os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600),
		os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER}), 0o644))
	must.NoError(t, err)
	return private, public
}

func writeSigned(t *testing.T, private string) string {
	t.Helper()
	c := builderFor(t, bundletest.Versions(t), "amd64")
	key, err := ReadSigningKey(private)
	must.NoError(t, err)
	c.SignBy(key)
	return writeOf(t, c)
}

func TestSignature(t *testing.T) {
	private, public := keys(t)
	_, other := keys(t)
	signed, plain := writeSigned(t, private), writeFor(t, "amd64")
	if err := verified(t.Context(), signed, SignedBy(public)); err != nil {
		t.Errorf("signed: %v", err)
	}
	if err := verified(t.Context(), signed); err != nil {
		t.Errorf("signed, and nobody asks: %v", err)
	}
	if b := opened(t, signed); !strings.HasPrefix(b.Signer(), "SHA256:") {
		t.Errorf("signer %q", b.Signer())
	}
	for what, err := range map[string]error{
		"it has no signature":     verified(t.Context(), plain, SignedBy(public)),
		"signed by another key":   verified(t.Context(), signed, SignedBy(other)),
		"no ed25519 public key":   verified(t.Context(), signed, SignedBy(private)),
		"no key in PEM":           verified(t.Context(), signed, SignedBy(plain)),
		"no such file":            verified(t.Context(), signed, SignedBy(public+".gone")),
		"no ed25519 private key;": func() error { _, err := ReadSigningKey(public); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}

// TestSignatureOfSomethingElse: a manifest that was changed, with the
// signature that it had.
func TestSignatureOfSomethingElse(t *testing.T) {
	private, public := keys(t)
	path := writeSigned(t, private)
	forged := save(t, changed(t, path, manifestName, func(b []byte) []byte {
		return bytes.Replace(b, []byte(catalog.Newest().Patch), []byte("v1.36.1"), 1)
	}))
	if _, err := Open(forged, SignedBy(public+".missing")); !errors.Is(err, ErrKey) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := Open(forged, SignedBy(public)); !errors.Is(err, ErrUntrusted) ||
		!strings.Contains(err.Error(), "does not match its manifest") {
		t.Errorf("got %v", err)
	}
}
