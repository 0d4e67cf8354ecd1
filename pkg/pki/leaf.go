package pki

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// CertificateRequest describes a certificate to issue.
type CertificateRequest struct {
	CommonName    string
	Organizations []string
	Hosts         []string      // names and IP addresses it serves; none: a client only
	Client        bool          // it may also (or only) be shown by a client
	Life          time.Duration // how long it is valid; 0: LeafLife
	WithAuthority bool          // the chain ends with the authority, so that a peer can pin it in the handshake
	Cross         []byte        // PEM of CrossSign, before the authority in the chain; nil: none
}

// Issue makes a key and has the authority sign a certificate for it.
func (a *Authority) Issue(r CertificateRequest, now time.Time) (Pair, error) {
	signer, key, err := signerOf(nil)
	if err != nil {
		return Pair{}, err
	}
	cert, err := a.Sign(r, signer.Public(), now)
	return Pair{Cert: cert, Key: key}, err
}

// Sign has the authority sign a certificate for a key that somebody else has.
func (a *Authority) Sign(r CertificateRequest, public crypto.PublicKey, now time.Time) ([]byte, error) {
	cert, err := sign(r.template(a.Cert, now), a.Cert, public, a.key)
	return append(cert, a.chain(r)...), err
}

// chain returns the certificates that follow the one of the request.
func (a *Authority) chain(r CertificateRequest) []byte {
	if !r.WithAuthority {
		return nil
	}
	return append(bytes.Clone(r.Cross), EncodeCertificate(a.Cert)...)
}

// NewRequest creates a key and a certificate request that it signs, with this
// common name and organizations. Both are PEM.
func NewRequest(commonName string, organizations ...string) (request, key []byte, err error) {
	signer, key, err := signerOf(nil)
	if err != nil {
		return nil, nil, err
	}
	request, err = certutil.MakeCSR(signer, &pkix.Name{CommonName: commonName, Organization: organizations}, nil, nil)
	return request, key, err
}

func (r CertificateRequest) template(ca *x509.Certificate, now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore: now.Add(-backdate).UTC(),
		NotAfter:  now.Add(cmp.Or(r.Life, LeafLife)).UTC(),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if ca.NotAfter.Before(t.NotAfter) {
		t.NotAfter = ca.NotAfter
	}
	t.ExtKeyUsage = r.usages()
	for _, h := range r.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t
}

func (r CertificateRequest) usages() []x509.ExtKeyUsage {
	var usages []x509.ExtKeyUsage
	if len(r.Hosts) > 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	return usages
}

// Stale says why a certificate must be issued again: it is broken, ends soon,
// has another signer, or is not what the request asks for. "" if it need not.
func (a *Authority) Stale(pair Pair, r CertificateRequest, now time.Time) string {
	cert, err := pair.matching()
	switch {
	case err != nil:
		return err.Error()
	case cert.CheckSignatureFrom(a.Cert) != nil:
		return otherSigner
	case !bytes.HasSuffix(bytes.TrimSpace(pair.Cert), bytes.TrimSpace(a.chain(r))):
		return "its chain lacks the authority"
	}
	if reason := Expiring(cert, now); reason != "" {
		return reason
	}
	return r.differs(cert)
}

// matching returns the certificate if the key belongs to it.
func (p Pair) matching() (*x509.Certificate, error) {
	cert, err := ParseCertificate(p.Cert)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(p.Key)
	if err == nil && !samePublic(cert.PublicKey, key.Public()) {
		err = ErrKeyMismatch
	}
	return cert, err
}

const (
	day         = "2006-01-02"
	otherSigner = "signed by another authority"
)

// OtherSigner returns a text if cert is not signed by the first certificate in
// authorities, which is the current signer, and "" otherwise.
func OtherSigner(cert *x509.Certificate, authorities []byte) (string, error) {
	ca, err := ParseCertificate(authorities)
	if err == nil && cert.CheckSignatureFrom(ca) != nil {
		return otherSigner, nil
	}
	return "", err
}

// StaleClient returns why a client's certificate must be issued again, or "". It needs
// no key of the authority. The required common name is commonName, or begins with
// commonName and a colon. authorities is nil if they are
// not known yet, see OtherSigner.
func StaleClient(pair Pair, commonName string, authorities []byte, now time.Time) (string, error) {
	cert, err := pair.matching()
	switch {
	case err != nil:
		return err.Error(), nil
	case cert.Subject.CommonName != commonName && !strings.HasPrefix(cert.Subject.CommonName, commonName+":"):
		return fmt.Sprintf("is for %s, not for %s", cert.Subject.CommonName, commonName), nil
	}
	if reason := Expiring(cert, now); reason != "" || authorities == nil {
		return reason, nil
	}
	return OtherSigner(cert, authorities)
}

// Expiring says that a certificate has ended, has less than a third of its
// lifetime left or has not begun; "" if none of them.
func Expiring(cert *x509.Certificate, now time.Time) string {
	switch {
	case now.Before(cert.NotBefore):
		return "not valid before " + cert.NotBefore.Format(time.RFC3339) + ", check the clock"
	case now.After(cert.NotAfter):
		return "expired on " + cert.NotAfter.Format(day)
	case cert.NotAfter.Sub(now) < cert.NotAfter.Sub(cert.NotBefore)/3:
		return "expires on " + cert.NotAfter.Format(day)
	}
	return ""
}

func (r CertificateRequest) differs(cert *x509.Certificate) string {
	if cert.Subject.CommonName != r.CommonName || !sameNames(cert.Subject.Organization, r.Organizations) {
		return fmt.Sprintf("is for %s, not for %s", cert.Subject.CommonName, r.CommonName)
	}
	if have, want := hosts(cert), hosts(r.template(cert, cert.NotBefore)); !slices.Equal(have, want) {
		return fmt.Sprintf("serves %s, not %s", strings.Join(have, " "), strings.Join(want, " "))
	}
	if !slices.Equal(cert.ExtKeyUsage, r.usages()) {
		return "has other usages"
	}
	return ""
}

func hosts(cert *x509.Certificate) []string {
	all := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		all = append(all, ip.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
