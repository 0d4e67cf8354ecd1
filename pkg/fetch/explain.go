package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// explain turns a network error into a step.Problem if the user can solve it.
// what is the content that was requested from host.
func explain(err error, what, host string) error {
	if err == nil || errors.Is(err, context.Canceled) || len(step.Problems(err)) > 0 {
		return err
	}
	if p := cmp.Or(unfit(err, what, host), unheard(err, what, host), answered(err, what, host)); p != nil {
		p.Firm = true // without the content, nothing can go on
		return p
	}
	return err
}

// unfit explains errors of TLS: certificates and plain HTTP.
func unfit(err error, what, host string) *step.Problem {
	var wrongName x509.HostnameError
	var bad x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return &step.Problem{Name: "unknown-authority",
			Text:   host + " has a certificate of an authority that this machine does not trust",
			Remedy: "give that authority's certificate with --ca-file"}
	case errors.As(err, &wrongName):
		return &step.Problem{Name: "certificate-name",
			Text:   host + " has a certificate for another name: " + wrongName.Error(),
			Remedy: "use the name that is in its certificate"}
	case errors.As(err, &bad):
		return &step.Problem{Name: "certificate-invalid", Text: host + " has an invalid certificate: " + bad.Error(),
			Remedy: "renew it, or set the clock of this machine"}
	case errors.As(err, new(tls.RecordHeaderError)),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return &step.Problem{Name: "plain-http",
			Text:   host + " uses plain HTTP, which anyone on the network can change",
			Remedy: "to accept plain HTTP, write http:// before its name"}
	case errors.Is(err, link.ErrPlainHTTP):
		return &step.Problem{Name: "plain-http",
			Text:   what + " is redirected to plain HTTP, which anyone on the network can change",
			Remedy: "to accept plain HTTP, write http:// before the name of the mirror"}
	}
	return nil
}

// unheard explains errors of connections: no such name, no answer, broken.
func unheard(err error, what, host string) *step.Problem {
	var noName *net.DNSError
	var silent *link.StalledError
	var noWay *net.OpError
	var broken *link.BrokenError
	switch {
	case errors.As(err, &noName):
		return &step.Problem{Name: "host-unknown",
			Text:   what + ": the name " + noName.Name + " cannot be resolved: " + noName.Err,
			Remedy: "check the name and this machine's name servers, or name a mirror or a proxy (HTTPS_PROXY)"}
	case errors.As(err, &silent):
		return &step.Problem{Name: "stalled", Text: what + ": " + silent.Error(),
			Remedy: "run the same command again to resume; --stall-timeout waits longer"}
	case errors.As(err, &noWay) && noWay.Op == "dial":
		return &step.Problem{
			Name: "unreachable", Text: what + ": " + host + " cannot be reached: " + noWay.Err.Error(),
			Remedy: reachRemedy,
		}
	case errors.As(err, &broken):
		return &step.Problem{
			Name: "broken-off", Text: what + ": " + broken.Error(), Remedy: "run the same command again to resume",
		}
	}
	return nil
}

// answered explains HTTP errors.
func answered(err error, what, host string) *step.Problem {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return nil
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &step.Problem{Name: "unauthorized", Text: host + " denies access to " + what,
			Remedy: "log in first: `docker login " + host + "`, as a user with read access"}
	case http.StatusNotFound:
		return &step.Problem{
			Name: "not-found", Text: host + " has no " + what, Remedy: "check the version, and that the mirror has it",
		}
	case http.StatusTooManyRequests:
		return &step.Problem{Name: "too-many-requests", Text: host + " limits the rate of requests",
			Remedy: "run the same command again later to resume; `docker login` may raise the limit"}
	}
	return nil
}
