package registry

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
)

// tokenDetour is a path that no registry has.
const tokenDetour = "/kube-bootstrap-token-server"

// tokenDetours lets a registry at a private address refer to a token server
// at another private address, as Docker and containerd do.
// go-containerregistry (v0.22) refuses such a token server, because
// a malicious registry could make the client send requests into its own
// network. Here the user has configured the registry. tokenDetours therefore
// replaces the token server in WWW-Authenticate by a path of the registry,
// and sends the requests for this path to the token server.
type tokenDetours struct {
	next     http.RoundTripper
	registry string                  // host:port
	server   atomic.Pointer[url.URL] // nil until the registry has named one
}

// RoundTrip sends requests for tokenDetour to the token server and all others
// to the registry.
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

// turn rewrites the token server in a WWW-Authenticate header. It does so
// only if the address is private, but not link-local, and if the scheme is
// the one of the registry.
func (d *tokenDetours) turn(req *http.Request, header http.Header) {
	said := header.Get("WWW-Authenticate")
	found := realm.FindStringSubmatch(said)
	if found == nil || req.URL.Host != d.registry {
		return
	}
	server, err := url.Parse(found[1])
	if err != nil || server.Scheme != req.URL.Scheme || server.Host == d.registry || !private(server) || !private(req.URL) {
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
