package join

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

var hashPattern = regexp.MustCompile(`\Asha256:[0-9a-f]{64}\z`)

// hasCA reports whether a PEM contains a CA with this hash. During a rotation the PEM contains two CAs.
func hasCA(caPEM []byte, hash string) bool {
	certs, err := pki.ParseCertificates(caPEM)
	return err == nil && slices.ContainsFunc(certs, func(ca *x509.Certificate) bool { return pki.Hash(ca) == hash })
}

// CAHashOf returns the hash of the first certificate, as --ca-cert-hash has it.
func CAHashOf(caPEM []byte) (string, error) {
	ca, err := pki.ParseCertificate(caPEM)
	if err != nil {
		return "", err
	}
	return pki.Hash(ca), nil
}

// parseCAHash checks a --ca-cert-hash as a user gives it.
func parseCAHash(text string) (string, error) {
	hash := strings.ToLower(strings.TrimSpace(text))
	if hashPattern.MatchString(hash) {
		return hash, nil
	}
	problem := "--ca-cert-hash is malformed: it must be sha256: and 64 hexadecimal digits"
	if hash == "" {
		problem = "--ca-cert-hash is missing: a host that joins knows its cluster by it"
	}
	return "", problemNamed("ca-cert-hash", problem, "copy it as `kube-bootstrap token create` printed it")
}

// pinned is the TLS of a host that knows its cluster by nothing but the CA's hash. Nothing is sent before
// verify has accepted the whole chain; found receives the CA.
func pinned(server, name, caHash string, found func(*x509.Certificate)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: name,
		// The CA is not known yet: the standard verification cannot be used, and verify does all of it once the
		// CA has been picked by its hash.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(state tls.ConnectionState) error {
			ca, err := verify(server, name, caHash, state.PeerCertificates)
			if err == nil {
				found(ca)
			}
			return err
		},
	}
}

func verify(server, name, caHash string, chain []*x509.Certificate) (*x509.Certificate, error) {
	ca := pick(chain, caHash)
	if ca == nil {
		return nil, wrongCA(server)
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: name}
	options.Roots.AddCert(ca)
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return nil, untrusted(server, err)
	}
	return ca, nil
}

// pick returns the CA with a hash. It is the last one of the chain: after a rotation, the chain also contains
// the same CA signed by the one before it.
func pick(chain []*x509.Certificate, caHash string) *x509.Certificate {
	for _, c := range slices.Backward(chain) {
		if c.IsCA && pki.Hash(c) == caHash {
			return c
		}
	}
	return nil
}

func untrusted(server string, err error) error {
	var invalid x509.CertificateInvalidError
	var address x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return notNow(server, err)
	case errors.As(err, &address):
		return wrongAddress(server, err)
	}
	return impostor(server, err)
}
