package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// signature is the member behind the manifest of a signed bundle. It covers the whole bundle, as the manifest contains
// the digests of all contents.
type signature struct {
	Signer    string `json:"signer"` // fingerprint of the public key
	Signature []byte `json:"signature"`
}

var (
	// ErrUntrusted means that a bundle is not signed by the required key.
	ErrUntrusted = errors.New("it is not to be trusted")
	// ErrKey means that the public key of the signer cannot be read.
	ErrKey = errors.New("verify key")
)

func sign(key ed25519.PrivateKey, manifest []byte) signature {
	return signature{fingerprint(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, manifest)}
}

// verifySignature verifies the signature member, which may be missing.
func verifySignature(key ed25519.PublicKey, manifest, member []byte) error {
	if member == nil {
		return fmt.Errorf("%w: it has no signature", ErrUntrusted)
	}
	s, err := parseSignature(member)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if s.Signer != fingerprint(key) {
		return fmt.Errorf("%w: it is signed by another key, %s, not by %s", ErrUntrusted, s.Signer, fingerprint(key))
	}
	if !ed25519.Verify(key, manifest, s.Signature) {
		return fmt.Errorf("%w: its signature does not match its manifest", ErrUntrusted)
	}
	return nil
}

func parseSignature(member []byte) (s signature, err error) {
	return s, step.Wrap(DecodeStrict(member, &s), "read %s", signatureName)
}

func fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// ReadSigningKey reads a private key as openssl writes it: PKCS#8 in PEM.
func ReadSigningKey(path string) (ed25519.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseKey[ed25519.PrivateKey](data, path, x509.ParsePKCS8PrivateKey,
		"private key; make one by `openssl genpkey -algorithm ed25519 -out FILE`")
}

func readVerificationKey(path string) (ed25519.PublicKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseVerificationKey(data, path)
}

func parseVerificationKey(data []byte, path string) (ed25519.PublicKey, error) {
	return parseKey[ed25519.PublicKey](data, path, x509.ParsePKIXPublicKey,
		"public key; make it by `openssl pkey -in PRIVATE -pubout -out FILE`")
}

// parseKey reads a key in PEM, the content of path. wanted ends the error for a key of another type.
func parseKey[Key any](data []byte, path string, parse func([]byte) (any, error), wanted string) (key Key, err error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return key, fmt.Errorf("%s is no key in PEM", path)
	}
	parsed, _ := parse(block.Bytes)
	key, ok := parsed.(Key)
	if !ok {
		return key, fmt.Errorf("%s holds no ed25519 %s", path, wanted)
	}
	return key, nil
}
