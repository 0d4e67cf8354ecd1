// Package fetch downloads images and files into a cache and verifies each
// blob against its digest while it arrives.
//
// Transfers retry with backoff, respect Retry-After, and resume at the last
// received byte, in this run or in the next one. An error that a retry cannot
// solve is a step.Problem.
package fetch

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/semaphore"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// DefaultStall is the default idle timeout.
	DefaultStall = 30 * time.Second
	// atOnce is the number of concurrent transfers.
	atOnce = 4
)

// ClientOptions configure the network. The proxy comes from the environment,
// credentials come from Docker's configuration and credential helpers.
type ClientOptions struct {
	Cache   string        // directory of complete and partial downloads
	Mirrors Mirrors       // by registry
	CAFile  string        // PEM file with additional authorities to trust
	Stall   time.Duration // idle timeout; 0 is DefaultStall
	Plain   []string      // hosts that may be reached by plain HTTP, in addition to mirrors
}

// Downloader downloads images and files. It is safe for concurrent use.
type Downloader struct {
	cache     string
	mirrors   Mirrors
	transport http.RoundTripper
	once      http.RoundTripper   // transport without retries
	turns     *semaphore.Weighted // of the transfers
	logins    sync.Map            // by repository: http.RoundTripper
}

// New returns a client. It fails if the CA file is not usable.
func New(o ClientOptions) (*Downloader, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = atOnce
	// The digest of a layer is the digest of its compressed bytes, so the
	// transport must not decompress.
	base.DisableCompression = true
	if o.CAFile != "" {
		pool, err := trust(o.CAFile)
		if err != nil {
			return nil, err
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	plain := append(o.Mirrors.plain(), o.Plain...)
	guarded := link.IdleTimeout{
		Next:  link.HTTPSOnly{Next: transport.NewUserAgent(base, "kube-bootstrap"), Plain: plain},
		Limit: cmp.Or(o.Stall, DefaultStall),
	}
	return &Downloader{
		cache: filepath.Join(o.Cache, "downloads"), mirrors: o.Mirrors,
		transport: link.Retry{Next: guarded}, once: guarded, turns: semaphore.NewWeighted(atOnce),
	}, nil
}

// trust returns the system's authorities and the authorities in a file.
func trust(path string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &step.Problem{
			Name: "ca-file", Firm: true, Text: err.Error(), Remedy: "give a PEM file with certificates of authorities",
		}
	}
	if !pool.AppendCertsFromPEM(data) {
		return nil, &step.Problem{
			Name: "ca-file", Firm: true, Text: path + " contains no certificate",
			Remedy: "give a PEM file with certificates of authorities",
		}
	}
	return pool, nil
}
