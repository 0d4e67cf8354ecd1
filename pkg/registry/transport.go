package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
)

const (
	dialLimit   = 10 * time.Second
	answerLimit = time.Minute
)

// transport returns a connection pool with the registry's TLS settings. It
// uses HTTP/1.1: with a connection per blob, concurrent blobs are faster than
// over one HTTP/2 connection, and a broken connection returns an error that
// Passing recognizes.
func (r *Registry) transport() (http.RoundTripper, error) {
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialLimit}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   dialLimit,
		ResponseHeaderTimeout: answerLimit,
		MaxIdleConnsPerHost:   8,
	}, nil
}

// Options returns the options for go-containerregistry's remote package.
func (r *Registry) Options(ctx context.Context) ([]remote.Option, error) {
	t, err := r.transport()
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(link.Retry{Next: r.guarded(t)}),
		remote.WithAuth(authn.FromConfig(r.Auth)),
		remote.WithUserAgent("kube-bootstrap"),
		remote.WithRetryBackoff(remote.Backoff{Duration: link.Backoff(1), Factor: 2, Jitter: 0.1, Steps: link.MaxAttempts}),
		remote.WithRetryPredicate(passes),
	}, nil
}

// passes reports whether an error is transient.
func passes(err error) bool {
	var answered *transport.Error
	return link.IsTransient(err) || errors.As(err, &answered) && answered.Temporary()
}

// guarded returns a transport that refuses plain HTTP, which would reveal
// credentials, unless Insecure allows it.
func (r *Registry) guarded(t http.RoundTripper) http.RoundTripper {
	t = &tokenDetours{next: t, registry: r.Host()}
	if r.Insecure {
		return t
	}
	return link.HTTPSOnly{Next: t}
}
