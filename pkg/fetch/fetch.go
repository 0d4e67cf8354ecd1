// Package fetch brings images and files over the network into a cache, each
// piece known by its digest and checked against it while it arrives.
//
// Links are slow and break, so every transfer goes on where it ended, in this
// run or the next; a server that asks to wait is waited for, one that falls
// silent is asked again, and what cannot be put right by trying again is a
// step.Problem with a name.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// DefaultStall is how long a server may send nothing.
	DefaultStall = 30 * time.Second
	// atOnce is how many transfers run side by side.
	atOnce = 4
	// userAgent is how we call ourselves.
	userAgent = "kube-bootstrap"
)

// Options say how to reach the network. Proxies come from the environment,
// credentials from Docker's own config and its helpers.
type Options struct {
	Cache   string        // a directory; what is there is not fetched again
	Mirrors Mirrors       // where to find registries instead
	CAFile  string        // PEM file of further authorities to trust
	Stall   time.Duration // 0: DefaultStall
	Plain   []string      // hosts that may be asked by plain HTTP, beside the mirrors that say so
}

// Client fetches. Several goroutines may use it.
type Client struct {
	cache     string
	mirrors   Mirrors
	transport http.RoundTripper
	turns     chan struct{}

	mu     sync.Mutex
	logins map[string]http.RoundTripper // by repository
}

// New prepares a client and says what is wrong with its options.
func New(o Options) (*Client, error) {
	if o.Stall == 0 {
		o.Stall = DefaultStall
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = atOnce
	// A layer must arrive as it is: its digest is that of the packed bytes.
	base.DisableCompression = true
	if o.CAFile != "" {
		pool, err := trust(o.CAFile)
		if err != nil {
			return nil, err
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	plain := append(o.Mirrors.plain(), o.Plain...)
	guarded := link.Silence{Next: link.Encrypted{Next: transport.NewUserAgent(base, userAgent), Plain: plain}, Limit: o.Stall}
	return &Client{
		cache: filepath.Join(o.Cache, "downloads"), mirrors: o.Mirrors,
		transport: link.Patient{Next: guarded}, turns: make(chan struct{}, atOnce), logins: map[string]http.RoundTripper{},
	}, nil
}

// trust returns the system's authorities and those of a file.
func trust(path string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &step.Problem{Name: "ca-file", Text: err.Error(), Remedy: "give a PEM file with certificates of authorities"}
	}
	if !pool.AppendCertsFromPEM(data) {
		return nil, &step.Problem{Name: "ca-file", Text: path + " holds no certificate", Remedy: "give a PEM file with certificates of authorities"}
	}
	return pool, nil
}

// turn waits until another transfer may begin.
func (c *Client) turn(ctx context.Context) (done func(), err error) {
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Reachable reports whether somebody answers at an address within the limit,
// whatever the answer is.
func (c *Client) Reachable(ctx context.Context, url string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", req.URL.Host, err)
	}
	return resp.Body.Close()
}
