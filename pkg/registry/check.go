package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// firstTries is the number of attempts to reach a registry that does not answer.
const firstTries = 3

// Check verifies access to the repository at path before anything is
// transferred: read access and, if write is set, push access. It sets
// PlainHTTP and BasicAuth. It returns a failure as a step.Problem.
func (r *Registry) Check(ctx context.Context, path string, write bool) error {
	t, err := r.transport()
	if err != nil {
		return err
	}
	if err := r.ping(ctx, t); err != nil {
		return err
	}
	repo, err := r.Repository(path)
	if err != nil {
		return r.problem("name", "is not a valid repository: "+err.Error(),
			"give registry[:port][/prefix] in lower case")
	}
	guarded := link.Retry{Next: r.guarded(t)}
	if err := r.login(ctx, repo, guarded); err != nil {
		return r.Explain(err)
	}
	if !write {
		return nil
	}
	return r.Explain(remote.CheckPushPermission(repo.Tag("check"), keychain{authn.FromConfig(r.Auth)}, guarded))
}

type keychain struct{ authn.Authenticator }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) { return k.Authenticator, nil }

// ping requests /v2/ by HTTPS and, if Insecure allows it, then by plain HTTP.
func (r *Registry) ping(ctx context.Context, t http.RoundTripper) error {
	err := r.pingBy(ctx, t, "https")
	r.PlainHTTP = err != nil && r.Insecure && r.pingBy(ctx, t, "http") == nil
	if r.PlainHTTP {
		return nil
	}
	return r.Explain(err)
}

func (r *Registry) pingBy(ctx context.Context, t http.RoundTripper, scheme string) error {
	response, err := r.base(ctx, link.Retry{Next: t, ConnectAttempts: firstTries}, scheme)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	r.BasicAuth = false
	if response.StatusCode == http.StatusUnauthorized {
		scheme, _, _ := strings.Cut(response.Header.Get("WWW-Authenticate"), " ")
		r.BasicAuth = strings.EqualFold(scheme, "Basic")
		return nil
	}
	return transport.CheckError(response, http.StatusOK)
}

// base requests /v2/.
func (r *Registry) base(ctx context.Context, t http.RoundTripper, scheme string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+r.Host()+"/v2/", nil)
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(request)
}

// login requests pull access to a repository with the configured credentials.
func (r *Registry) login(ctx context.Context, repo name.Repository, t http.RoundTripper) error {
	client, err := transport.NewWithContext(ctx, repo.Registry, authn.FromConfig(r.Auth), t,
		[]string{repo.Scope(transport.PullScope)})
	if err != nil {
		return err
	}
	response, err := r.base(ctx, client, r.Scheme())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	return transport.CheckError(response, http.StatusOK)
}

func (r *Registry) problem(name, text, remedy string) *step.Problem {
	return &step.Problem{Name: "registry-" + name, Text: "registry " + r.Address + " " + text, Remedy: remedy}
}

// Explain turns a network error or an answer of the registry into the matching step.Problem.
func (r *Registry) Explain(err error) error {
	var (
		dns      *net.DNSError
		verify   *tls.CertificateVerificationError
		answered *transport.Error
		op       *net.OpError
	)
	switch {
	case err == nil, len(step.Problems(err)) > 0, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns):
		return r.unresolved(dns)
	case errors.As(err, &verify):
		return r.untrusted(verify.Err)
	case errors.Is(err, link.ErrPlainHTTP), errors.As(err, new(tls.RecordHeaderError)),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return r.problem("plain-http", "uses plain HTTP, which anyone on the network can read and change",
			"configure TLS there, or set --insecure")
	case errors.As(err, new(tls.AlertError)), strings.Contains(err.Error(), "remote error: tls:"):
		return r.problem("client-cert", "refuses the TLS connection: "+err.Error(),
			"give a client certificate that it trusts with --registry-cert and --registry-key")
	case errors.As(err, &answered):
		return r.answered(answered)
	case errors.As(err, &op):
		return r.problem("unreachable", "cannot be reached: "+op.Error(),
			"check that it runs, and that this machine has a route to it")
	}
	return err
}

// unresolved explains why a name has no address. It may be the name of a proxy or of a token
// server.
func (r *Registry) unresolved(err *net.DNSError) *step.Problem {
	switch own := (&url.URL{Host: r.Host()}).Hostname(); {
	case !err.IsNotFound:
		return r.problem("host", fmt.Sprintf("is not found: the name %s cannot be resolved: %s", err.Name, err.Err),
			"check the name server of this machine")
	case err.Name != own:
		return r.problem("host", fmt.Sprintf("needs the host %s, which does not exist", err.Name),
			"correct the proxy (HTTPS_PROXY), or the token server that the registry names")
	}
	return r.problem("host", fmt.Sprintf("is not found: host %s does not exist", err.Name),
		"correct its name, or give its address")
}

func (r *Registry) untrusted(err error) error {
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return r.problem("ca", "has a certificate for another name: "+err.Error(),
			"use a name or address of that certificate")
	case errors.As(err, new(x509.CertificateInvalidError)):
		return r.problem("ca", "has an invalid certificate: "+err.Error(), "renew it, or set the clock of this machine")
	case len(r.CA) > 0:
		return r.problem("ca", "has a certificate that was not signed by the given authority: "+err.Error(),
			"give the correct one with --registry-ca")
	}
	return r.problem("ca", "has a certificate that this machine does not trust: "+err.Error(),
		"name its authority with --registry-ca FILE")
}

func (r *Registry) answered(err *transport.Error) error {
	switch err.StatusCode {
	case http.StatusUnauthorized:
		if r.Auth == (authn.AuthConfig{}) {
			return r.problem("login", "wants a user and a password",
				"give --registry-username and --registry-password-file, or run `docker login "+r.Host()+"`")
		}
		return r.problem("login", "refuses the credentials of user "+r.Auth.Username, "correct them")
	case http.StatusForbidden:
		return r.problem("denied", "does not allow this: "+err.Error(),
			"use a user with this permission, or another prefix")
	case http.StatusNotFound:
		return r.problem("name", "has no such repository: "+err.Error(),
			"correct the address, or `kube-bootstrap offline push` there first")
	case http.StatusTooManyRequests:
		return r.problem("busy", "limits the rate of requests", "try again later")
	}
	return r.problem("answer", "answers with an error: "+err.Error(), "read the log of the registry")
}
