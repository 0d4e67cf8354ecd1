package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// CertificateFile is a certificate that a host keeps in a file.
type CertificateFile struct {
	Name      string // by which a user names it
	Path      string // of a PEM, or of a kubeconfig that contains the certificate
	Purpose   string
	RenewedBy string // "": by nobody
	Remedy    string // what a user does if nobody has renewed it in time
	Optional  bool   // administrators may remove it
}

// CertificateStatus is what a host has of a Held.
type CertificateStatus struct {
	Name    string `json:"name"`
	Purpose string `json:"purpose"`
	Path    string `json:"path"`
	// Signer is the common name of the authority; Expires is zero if the
	// certificate cannot be read, for the reason in Problem.
	Signer    string    `json:"signer,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	DaysLeft  int       `json:"daysLeft"`
	RenewedBy string    `json:"renewedBy,omitempty"`
	// ExpiresSoon: the certificate has expired, or will before it is certain that
	// somebody renews it.
	ExpiresSoon bool   `json:"expiresSoon,omitempty"`
	Problem     string `json:"problem,omitempty"`

	remedy string
}

// Inspect reads the certificate, with a function that reads a file of the host.
func (h CertificateFile) Inspect(read func(path string) ([]byte, error), now time.Time) CertificateStatus {
	l := CertificateStatus{Name: h.Name, Purpose: h.Purpose, Path: h.Path, RenewedBy: h.RenewedBy, remedy: h.Remedy}
	cert, err := h.parse(read)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.Problem = "missing"
		return l
	case err != nil:
		l.Problem = err.Error()
		return l
	}
	l.Signer, l.Expires = cert.Issuer.CommonName, cert.NotAfter
	l.DaysLeft = int(cert.NotAfter.Sub(now).Hours() / 24)
	l.ExpiresSoon = endsSoon(cert, now)
	if now.After(cert.NotAfter) {
		l.Problem = "expired"
	}
	return l
}

func (h CertificateFile) parse(read func(path string) ([]byte, error)) (*x509.Certificate, error) {
	data, err := read(h.Path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(h.Path, ".conf") {
		config, err := ParseKubeconfig(data)
		if err != nil {
			return nil, err
		}
		data = config.Pair.Cert
	}
	return ParseCertificate(data)
}

// soon is the remaining lifetime below which a certificate is a problem. Agents and
// kubelets renew earlier.
const soon = 30 * 24 * time.Hour

// RotateAuthorities is the remedy for an authority that expires soon.
const RotateAuthorities = "run `kube-bootstrap certs rotate --ca` on a control plane before the certificate " +
	"authority expires"

// endsSoon reports whether less than soon is left, or, of a certificate with a
// short lifetime, less than the part of it that soon is of a year.
func endsSoon(cert *x509.Certificate, now time.Time) bool {
	return cert.NotAfter.Sub(now) < min(soon, cert.NotAfter.Sub(cert.NotBefore)/12)
}

// FirstToExpire returns the first to expire; nil if none can be read.
func FirstToExpire(all []CertificateStatus) *CertificateStatus {
	var first *CertificateStatus
	for i := range all {
		if one := &all[i]; !one.Expires.IsZero() && (first == nil || one.Expires.Before(first.Expires)) {
			first = one
		}
	}
	return first
}

// ExpiryProblem returns the problem that certificates have expired or expire
// soon; nil if none does [certificate-expiry].
func ExpiryProblem(all []CertificateStatus) error {
	var names, remedies []string
	for _, one := range all {
		if !one.ExpiresSoon {
			continue
		}
		names = append(names, one.Name)
		if !slices.Contains(remedies, one.remedy) {
			remedies = append(remedies, one.remedy)
		}
	}
	if len(names) == 0 {
		return nil
	}
	first := FirstToExpire(all)
	return &step.Problem{
		Name: "certificate-expiry", Firm: true, Remedy: strings.Join(remedies, "; "),
		Text: fmt.Sprintf("certificates have expired or expire soon: %s (%s is the first, on %s)",
			strings.Join(names, ", "), first.Name, first.Expires.Format(day)),
	}
}
