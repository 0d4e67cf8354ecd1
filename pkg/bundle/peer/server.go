// Package peer brings a bundle from a control plane to the other hosts of its cluster.
//
//	agent of a control plane               host that joins
//	┌ Server ───────────────────┐          ┌ Client ──────────────────────┐
//	│ the bundle of its settings│──HTTPS──▶│ a file with the same head and│
//	│ as a file, with ranges    │          │ only the frames of its       │
//	└───────────────────────────┘          │ architecture (bundle/part.go)│
//	                                       └──────────────────────────────┘
//
// Tried and rejected: the form of a bundle in a registry. A bundle compresses all layers of an
// architecture together, so the agent would have to decompress and compress them again.
package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link/clients"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// hosts are the limits of the clients: a host sends one request after the other. On a slow link it
// reads 16 KB/s or more.
var hosts = clients.Limits{
	Silence: 30 * time.Second, PerByte: 60 * time.Microsecond, Idle: 30 * time.Second, Header: 16 << 10, Connections: 8,
}

// transfers is the number of concurrent transfers. The hosts that join together read the same
// frames at about the same time, so that the first one loads them from the disk into the page
// cache and the others read them there, as long as they are not so many that the cache loses a
// frame before the last one has read it. A host gets at most half
// of the transfers, also if it reads slowly on purpose. Each transfer needs 100 KB of memory.
const transfers = 16

// bundlePath is the URL path of the bundle, the only resource.
const bundlePath = "/bundle"

// BundleServer serves the bundle of this host.
type BundleServer struct {
	// Open opens the bundle. Its error is for the user of the other host.
	Open func() (*bundle.Bundle, error)
	// Allows reports whether the holder of a token, or of a client certificate that is not
	// verified yet, may read it.
	Allows func(ctx context.Context, token string, chain []*x509.Certificate) (bool, error)
	// Certificate returns the serving certificate. It is called for each connection.
	Certificate func() (*tls.Certificate, error)
}

// Serve answers requests on addr until ctx ends. It speaks HTTP/1.1 only: a connection of HTTP/2
// would carry any number of requests.
func (s BundleServer) Serve(ctx context.Context, addr string) error {
	server := hosts.Server(s.handler())
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.Certificate() },
	}
	return registry.ServeImages(ctx, addr, server)
}

func (s BundleServer) handler() http.Handler {
	turns := make(chan struct{}, transfers)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w, r, end := hosts.Request(w, r)
		defer end()
		if !s.admits(w, r) {
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			s.send(w, r)
		case <-r.Context().Done():
		}
	})
}

// admits answers a request that may not be made.
func (s BundleServer) admits(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path != bundlePath:
		http.NotFound(w, r)
		return false
	case r.Method != http.MethodGet:
		http.Error(w, "this server is read-only", http.StatusMethodNotAllowed)
		return false
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	allowed, err := s.Allows(r.Context(), token, r.TLS.PeerCertificates)
	switch {
	case err != nil:
		http.Error(w, "the API server of this control plane does not answer", http.StatusServiceUnavailable)
	case !allowed:
		http.Error(w, "it does not accept the token or certificate of this host", http.StatusForbidden)
	}
	return allowed && err == nil
}

func (s BundleServer) send(w http.ResponseWriter, r *http.Request) {
	b, err := s.Open()
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer b.Close()
	if err := lacks(b, r.URL.Query().Get("kubernetes"), r.URL.Query().Get("arch")); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/zstd")
	w.Header().Set("Etag", tag(b))
	http.ServeContent(w, r, "", time.Time{}, bundle.Content(b))
}

// lacks returns why a bundle is of no use for a host.
func lacks(b *bundle.Bundle, kubernetes, arch string) error {
	has := fmt.Sprintf("its bundle %s is of Kubernetes %s for %s", b.Path, b.Manifest.Versions.Kubernetes,
		strings.Join(b.Archs(), ", "))
	switch {
	case b.Manifest.Base != nil:
		return errors.New(has + " and needs the bundle on which it was built, which no host can fetch")
	case b.Manifest.Versions.Kubernetes != kubernetes:
		return fmt.Errorf("%s, not of Kubernetes %s", has, kubernetes)
	case !slices.Contains(b.Archs(), arch):
		return fmt.Errorf("%s, not for %s", has, arch)
	}
	return nil
}

// tag identifies the content of a bundle, whichever architectures are in its file.
func tag(b *bundle.Bundle) string { return `"` + b.Identity().Encoded() + `"` }
