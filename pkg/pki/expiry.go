package pki

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// soon is the remaining lifetime below which a certificate is a problem. Agents and
// kubelets renew earlier.
const soon = 30 * 24 * time.Hour

// RotateAuthorities is the remedy for an authority that expires soon.
const RotateAuthorities = "run `kube-bootstrap certs rotate --ca` on a control plane before the certificate authority expires"

// endsSoon reports whether less than soon is left, or, of a certificate with a
// short lifetime, less than the part of it that soon is of a year.
func endsSoon(cert *x509.Certificate, now time.Time) bool {
	return cert.NotAfter.Sub(now) < min(soon, cert.NotAfter.Sub(cert.NotBefore)/12)
}

// FirstToExpire returns the certificate that expires first; nil if none can be
// read.
func FirstToExpire(all []Listed) *Listed {
	var first *Listed
	for i := range all {
		if one := &all[i]; !one.Expires.IsZero() && (first == nil || one.Expires.Before(first.Expires)) {
			first = one
		}
	}
	return first
}

// ExpiryProblem returns the problem that certificates have expired or expire
// soon; nil if none does [certificate-expiry].
func ExpiryProblem(all []Listed) error {
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
