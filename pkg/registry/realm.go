package registry

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// tokenDetour is a path of the registry that it does not have.
const tokenDetour = "/kube-bootstrap-token-server"

// tokenDetours lets a registry at a private address send us for a token to
// another private address, as Docker and containerd do. go-containerregistry
// refuses that, because a registry of strangers could send its visitors to
// whatever is in their network; the address of this one was given by its owner.
// So what it is shown is a path of the registry itself.
type tokenDetours struct {
	next     http.RoundTripper
	registry string // host and port

	mu     sync.Mutex
	server *url.URL // nil: none
}

// RoundTrip goes the way that the registry meant.
func (d *tokenDetours) RoundTrip(req *http.Request) (*http.Response, error) {
	if path, ok := strings.CutPrefix(req.URL.Path, tokenDetour); ok && req.URL.Host == d.registry {
		d.mu.Lock()
		server := d.server
		d.mu.Unlock()
		if server != nil {
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

// turn changes where a refusal tells us to go. Neither may that be a link-local
// address, nor a way without TLS where the registry has it.
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
	d.mu.Lock()
	d.server = server
	d.mu.Unlock()
	detour := *server
	detour.Host, detour.Path = d.registry, tokenDetour+server.Path
	header.Set("WWW-Authenticate", strings.Replace(said, found[1], detour.String(), 1))
}

func private(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && (addr.IsPrivate() || addr.IsLoopback())
}
