package join

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const keyLength = 32 // bytes, of AES-256

// CertificateKey opens what control planes share, which the cluster itself
// keeps only under this key. However it is printed, it stays hidden; only
// Reveal gives it away.
type CertificateKey struct{ key []byte }

// NewCertificateKey makes a key.
func NewCertificateKey() CertificateKey {
	key := make([]byte, keyLength)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	return CertificateKey{key}
}

// ParseCertificateKey reads a key as a user gives it.
func ParseCertificateKey(text string) (CertificateKey, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != keyLength {
		return CertificateKey{}, malformedKey()
	}
	return CertificateKey{key}, nil
}

// Reveal returns the key as a joining control plane shows it.
func (k CertificateKey) Reveal() string { return hex.EncodeToString(k.key) }

func (k CertificateKey) String() string { return "<hidden>" }

// Format hides the key from every verb of fmt, %#v among them.
func (k CertificateKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

func (k CertificateKey) isZero() bool { return len(k.key) == 0 }

func (k CertificateKey) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (k CertificateKey) seal(plain []byte) ([]byte, error) {
	aead, err := k.cipher()
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, nil), nil
}

func (k CertificateKey) open(sealed []byte) ([]byte, error) {
	aead, err := k.cipher()
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, wrongKey()
	}
	return plain, nil
}

func malformedKey() error {
	return &step.Problem{
		Name:   "certificate-key",
		Text:   "the certificate key is malformed: it must be 64 hexadecimal digits",
		Remedy: "copy it as `kube-bootstrap token create --control-plane` printed it",
	}
}

func wrongKey() error {
	return &step.Problem{
		Name:   "certificate-key",
		Text:   "the certificate key does not open what the control planes share: it is wrong, or a newer one was made since",
		Remedy: "make a new one with `kube-bootstrap token create --control-plane` on a control plane",
	}
}

func keyExpired(server string) error {
	return &step.Problem{
		Name:   "certificate-key",
		Text:   server + " no longer hands over what control planes share: that is good for two hours",
		Remedy: "make a new key with `kube-bootstrap token create --control-plane` on a control plane",
	}
}
