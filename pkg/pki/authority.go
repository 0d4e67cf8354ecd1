// Package pki makes and judges certificates and the kubeconfigs that carry
// them. It is pure: bytes in, bytes out; the caller owns files and clock.
package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// How long things hold. Certificates begin a little in the past, for hosts
// whose clocks differ.
const (
	AuthorityLife = 10 * 365 * 24 * time.Hour
	LeafLife      = 365 * 24 * time.Hour
	backdate      = 5 * time.Minute
)

const certificateType = "CERTIFICATE" // of a block of PEM

// Errors of what is read.
var (
	ErrNoCertificate = errors.New("holds no PEM certificate")
	ErrNoKey         = errors.New("holds no PEM private key of the ECDSA, RSA or PKCS #8 kind")
	ErrNotAuthority  = errors.New("is not a certificate authority")
	ErrKeyMismatch   = errors.New("certificate and private key do not belong together")
)

// Pair is a certificate, or a chain of them, and its private key, in PEM.
type Pair struct{ Cert, Key []byte }

// Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
	pem  Pair
}

// NewAuthority makes a self-signed authority. key is the PEM of a private key
// to keep using; nil makes a new one.
func NewAuthority(name string, key []byte, now time.Time) (*Authority, error) {
	signer, key, err := signerOf(key)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate).UTC(),
		NotAfter:              now.Add(AuthorityLife).UTC(),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := sign(template, template, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(Pair{Cert: cert, Key: key})
}

// ParseAuthority reads an authority. During a rotation the PEM contains two
// certificates. ParseAuthority selects the certificate with the public key of
// pair.Key.
func ParseAuthority(pair Pair) (*Authority, error) {
	certs, err := ParseCertificates(pair.Cert)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(pair.Key)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(certs, func(cert *x509.Certificate) bool { return samePublic(cert.PublicKey, key.Public()) })
	switch {
	case at < 0:
		return nil, ErrKeyMismatch
	case !certs[at].IsCA:
		return nil, ErrNotAuthority
	}
	return &Authority{Cert: certs[at], key: key, pem: pair}, nil
}

// PEM returns what ParseAuthority has read: the key, and all certificates.
func (a *Authority) PEM() Pair { return a.pem }

// CrossSign returns the certificate of another authority, with the same name and
// key, signed by this one. A server that shows it is accepted by clients that
// trust this authority only.
func (a *Authority) CrossSign(other *x509.Certificate) ([]byte, error) {
	template := &x509.Certificate{
		Subject: other.Subject, SubjectKeyId: other.SubjectKeyId, NotBefore: other.NotBefore, NotAfter: a.Cert.NotAfter,
		KeyUsage: other.KeyUsage, BasicConstraintsValid: true, IsCA: true,
	}
	return sign(template, a.Cert, other.PublicKey, a.key)
}

// SignText signs a text, for hosts that trust the authority.
func (a *Authority) SignText(text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return a.key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// Vouched reports whether one of the authorities of a PEM has signed a text.
func Vouched(authorities, text, signature []byte) bool {
	certs, err := ParseCertificates(authorities)
	return err == nil && slices.ContainsFunc(certs, func(cert *x509.Certificate) bool {
		algorithm := x509.ECDSAWithSHA256
		if cert.PublicKeyAlgorithm == x509.RSA {
			algorithm = x509.SHA256WithRSA
		}
		return cert.CheckSignature(algorithm, text, signature) == nil
	})
}

// Includes reports whether a PEM has all certificates of another one.
func Includes(have, others []byte) bool {
	known, err := ParseCertificates(have)
	certs, errOthers := ParseCertificates(others)
	return err == nil && errOthers == nil && !slices.ContainsFunc(certs, func(cert *x509.Certificate) bool {
		return !slices.ContainsFunc(known, cert.Equal)
	})
}

// Hash pins a certificate's public key, in the form of kubeadm's
// discovery-token-ca-cert-hash: "sha256:<hex>".
func Hash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fingerprint is the SHA-256 of a certificate, as the API server shows it.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// ParseCertificate returns the first certificate of a PEM.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateType {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, ErrNoCertificate
}

// ReadCertificate returns the first certificate of a file, which read reads.
func ReadCertificate(read func(path string) ([]byte, error), path string) (*x509.Certificate, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return ParseCertificate(data)
}

// ParseCertificates returns all certificates of a PEM, at least one.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	var der []byte
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateType {
			der = append(der, block.Bytes...)
		}
	}
	if len(der) == 0 {
		return nil, ErrNoCertificate
	}
	return x509.ParseCertificates(der)
}

// EncodeCertificate returns the PEM of a certificate.
func EncodeCertificate(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: cert.Raw})
}

// NewKey makes an ECDSA P-256 private key, in PEM.
func NewKey() ([]byte, error) { return keyutil.MakeEllipticPrivateKeyPEM() }

// PublicKey returns the public half of a private key, both in PEM.
func PublicKey(key []byte) ([]byte, error) {
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// signerOf reads a private key, which it returns; nil makes a new one.
func signerOf(key []byte) (signer crypto.Signer, pem []byte, err error) {
	if key == nil {
		if key, err = NewKey(); err != nil {
			return nil, nil, err
		}
	}
	signer, err = parseKey(key)
	return signer, key, err
}

func parseKey(data []byte) (crypto.Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if signer, ok := key.(crypto.Signer); ok && err == nil {
		return signer, nil
	}
	return nil, ErrNoKey
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %s: %w", template.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: der}), nil
}

func samePublic(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}
