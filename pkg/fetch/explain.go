package fetch

import (
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

// explain turns an error of the network into a problem with a name, where the
// user can do something about it. What is what was asked for, at host.
func explain(err error, what, host string) error {
	if err == nil || errors.Is(err, context.Canceled) || len(step.Problems(err)) > 0 {
		return err
	}
	for _, known := range []func(error, string, string) *step.Problem{unfit, unheard, answered} {
		if p := known(err, what, host); p != nil {
			return p
		}
	}
	return err
}

// unfit is about who is there instead of the one we want.
func unfit(err error, what, host string) *step.Problem {
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var bad x509.CertificateInvalidError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return &step.Problem{Name: "unknown-authority", Text: host + " shows a certificate by an authority that is not trusted here",
			Remedy: "give that authority's certificate with --ca-file"}
	case errors.As(err, &wrongName):
		return &step.Problem{Name: "certificate-name", Text: host + " shows a certificate for another name: " + wrongName.Error(),
			Remedy: "use the name that is in its certificate"}
	case errors.As(err, &bad):
		return &step.Problem{Name: "certificate-invalid", Text: host + " shows a certificate that does not hold: " + bad.Error(),
			Remedy: "renew it, or set the clock of this machine"}
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return &step.Problem{Name: "plain-http", Text: host + " speaks plain HTTP, which anybody on the way can change",
			Remedy: "to accept plain HTTP, write http:// before its name"}
	case errors.Is(err, link.ErrPlainHTTP):
		return &step.Problem{Name: "plain-http", Text: what + " leads to plain HTTP, which anybody on the way can change",
			Remedy: "to accept plain HTTP, write http:// before the name of the mirror"}
	}
	return nil
}

// unheard is about nobody being there.
func unheard(err error, what, host string) *step.Problem {
	var noName *net.DNSError
	var silent *link.StalledError
	var noWay *net.OpError
	var broken *link.BrokenError
	switch {
	case errors.As(err, &noName):
		return &step.Problem{Name: "host-unknown", Text: what + ": the name " + noName.Name + " is not known: " + noName.Err,
			Remedy: "check it and this machine's name servers, or name a mirror or a proxy (HTTPS_PROXY)"}
	case errors.As(err, &silent):
		return &step.Problem{Name: "stalled", Text: what + ": " + silent.Error(),
			Remedy: "run the same command again to go on from here; --stall-timeout waits longer"}
	case errors.As(err, &noWay) && noWay.Op == "dial":
		return &step.Problem{Name: "unreachable", Text: what + ": " + host + " can not be reached: " + noWay.Err.Error(),
			Remedy: "check the address, or name a mirror or a proxy (HTTPS_PROXY)"}
	case errors.As(err, &broken):
		return &step.Problem{Name: "broken-off", Text: what + ": " + broken.Error(), Remedy: "run the same command again to go on from here"}
	}
	return nil
}

// answered is about what the server said.
func answered(err error, what, host string) *step.Problem {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return nil
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &step.Problem{Name: "unauthorized", Text: host + " does not let us have " + what,
			Remedy: "log in first: `docker login " + host + "`, with a user who may read it"}
	case http.StatusNotFound:
		return &step.Problem{Name: "not-found", Text: host + " has no " + what, Remedy: "check the version, and that the mirror has it"}
	case http.StatusTooManyRequests:
		return &step.Problem{Name: "too-many-requests", Text: host + " wants no more requests for now",
			Remedy: "run the same command again later: it goes on from here; logging in may raise the limit"}
	}
	return nil
}
