// Package certkey is the certificate key: it encrypts the files that control planes
// share while they are in the cluster. Only a joining control plane has it.
package certkey

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

// Key is a certificate key. No verb of fmt prints it; only Reveal returns it.
type Key struct{ key []byte }

// New returns a random key.
func New() Key {
	key := make([]byte, keyLength)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	return Key{key}
}

// Parse reads a key of 64 hexadecimal digits [certificate-key].
func Parse(text string) (Key, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != keyLength {
		return Key{}, &step.Problem{
			Name:   "certificate-key",
			Text:   "the certificate key is malformed: it must be 64 hexadecimal digits",
			Remedy: "copy it as `kube-bootstrap token create --control-plane` printed it",
		}
	}
	return Key{key}, nil
}

// Reveal returns the key as a joining control plane shows it.
func (k Key) Reveal() string { return hex.EncodeToString(k.key) }

func (k Key) String() string { return "<hidden>" }

// Format hides the key from every verb of fmt, %#v among them.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return len(k.key) == 0 }

func (k Key) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts plain.
func (k Key) Seal(plain []byte) ([]byte, error) {
	aead, err := k.cipher()
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, nil), nil //nolint:gosec // the cipher adds a random nonce
}

// Open decrypts the result of Seal with the same key [certificate-key].
func (k Key) Open(sealed []byte) ([]byte, error) {
	aead, err := k.cipher()
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, &step.Problem{
			Name: "certificate-key",
			Text: "the certificate key does not open what the control planes share: it is wrong, or a newer one " +
				"was made since",
			Remedy: "make a new one with `kube-bootstrap token create --control-plane` on a control plane",
		}
	}
	return plain, nil
}
