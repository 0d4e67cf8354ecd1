package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
)

const (
	dialLimit   = 10 * time.Second
	answerLimit = time.Minute
	// idleLimit closes unused connections: nothing else does, and the agent opens a
	// registry again and again.
	idleLimit = 90 * time.Second
)

// transport returns a connection pool with the registry's TLS settings. It uses HTTP/1.1: with a
// connection per blob, concurrent blobs are faster than over one HTTP/2 connection, and a broken
// connection returns an error that Passing recognizes.
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
		IdleConnTimeout:       idleLimit,
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
		remote.WithRetryBackoff(remote.Backoff{
			Duration: link.Backoff(1), Factor: 2, Jitter: 0.1, Steps: link.MaxAttempts,
		}),
		remote.WithRetryPredicate(passes),
	}, nil
}

// passes reports whether an error is transient.
func passes(err error) bool {
	answered, ok := errors.AsType[*transport.Error](err)
	return link.IsTransient(err) || ok && answered.Temporary()
}

// guarded returns a transport that refuses plain HTTP, which reveals credentials.
func (r *Registry) guarded(t http.RoundTripper) http.RoundTripper {
	t = &tokenDetours{next: t, registry: r.Host()}
	if r.Insecure {
		return t
	}
	return link.HTTPSOnly{Next: t}
}

// tokenDetour is a path that no registry has.
const tokenDetour = "/kube-bootstrap-token-server"

// tokenDetours lets a registry at a private address refer to a token server at another private
// address, as Docker and containerd do. go-containerregistry (v0.22) refuses such a token server,
// because a malicious registry could make the client send requests into its own network. Here the
// user has configured the registry. tokenDetours therefore replaces the token server in
// WWW-Authenticate by a path of the registry, and sends the requests for this path to the token
// server.
// https://github.com/google/go-containerregistry/blob/v0.22.1/pkg/v1/remote/transport/bearer.go#L127-L156
type tokenDetours struct {
	next     http.RoundTripper
	registry string                  // host:port
	server   atomic.Pointer[url.URL] // nil until the registry has named one
}

// RoundTrip sends requests for tokenDetour to the token server and all others to the registry.
func (d *tokenDetours) RoundTrip(req *http.Request) (*http.Response, error) {
	if path, ok := strings.CutPrefix(req.URL.Path, tokenDetour); ok && req.URL.Host == d.registry {
		if server := d.server.Load(); server != nil {
			req = req.Clone(req.Context())
			req.URL.Host, req.URL.Path, req.Host = server.Host, path, ""
		}
	}
	resp, err := d.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		d.turn(req, resp.Header)
	}
	return resp, err
}

var realm = regexp.MustCompile(`realm="([^"]+)"`)

// turn rewrites the token server in WWW-Authenticate if its address is private, but not
// link-local, and its scheme is the one of the registry.
func (d *tokenDetours) turn(req *http.Request, header http.Header) {
	said := header.Get("WWW-Authenticate")
	found := realm.FindStringSubmatch(said)
	if found == nil || req.URL.Host != d.registry {
		return
	}
	server, err := url.Parse(found[1])
	if err != nil || server.Scheme != req.URL.Scheme || server.Host == d.registry || !private(server) ||
		!private(req.URL) {
		return
	}
	d.server.Store(server)
	detour := *server
	detour.Host, detour.Path = d.registry, tokenDetour+server.Path
	header.Set("WWW-Authenticate", strings.Replace(said, found[1], detour.String(), 1))
}

func private(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && (addr.IsPrivate() || addr.IsLoopback())
}
