package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const good = "abcdef.0123456789abcdef"

func writeBundle(t *testing.T, archs ...string) string {
	t.Helper()
	v := bundletest.Versions(t)
	b, err := bundle.NewBuilder(v, bundletest.ImagesApart(t, v, archs...))
	must.NoError(t, err)
	b.Cache = t.TempDir()
	path := filepath.Join(t.TempDir(), "bundle.tar.zst")
	must.NoError(t, b.Write(t.Context(), path))
	return path
}

// controlPlane serves the bundle at a path. between may change or answer a request itself.
type controlPlane struct {
	*httptest.Server
	sent atomic.Int64 // bytes of sections
}

func serve(t *testing.T, path string, between func(http.ResponseWriter, *http.Request) bool) *controlPlane {
	t.Helper()
	s := BundleServer{
		Open: func() (*bundle.Bundle, error) { return bundle.Open(path) },
		Allows: func(_ context.Context, token string, chain []*x509.Certificate) (bool, error) {
			if token == "no API" {
				return false, errors.New("no answer")
			}
			return token == good || len(chain) > 0, nil
		},
	}
	handler, c := s.handler(), &controlPlane{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w = &counted{w, c}
		}
		if between == nil || between(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	c.Config = hosts.Server(c.Config.Handler)
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

type counted struct {
	http.ResponseWriter
	of *controlPlane
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.of.sent.Add(int64(n))
	return n, err
}

func client(t *testing.T, arch string, of ...*controlPlane) Fetcher {
	t.Helper()
	pool := x509.NewCertPool()
	var servers []string
	for _, c := range of {
		pool.AddCert(c.Certificate())
		servers = append(servers, strings.TrimPrefix(c.URL, "https://"))
	}
	return Fetcher{
		Servers:    func(context.Context) []string { return servers },
		Kubernetes: bundletest.Versions(t).Kubernetes, Arch: arch,
		Connect: func(context.Context) (*tls.Config, string, error) {
			return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, good, nil
		},
	}
}

// fetched fetches, and expects a part that a host of arch can use.
func fetched(t *testing.T, c Fetcher, files host.Files) {
	t.Helper()
	must.NoError(t, c.Fetch(t.Context(), files, "/var/lib/bundle"))
	b, err := bundle.Open(files.Path("/var/lib/bundle"))
	must.NoError(t, err)
	defer b.Close()
	must.NoError(t, b.Check(t.Context(), c.Arch))
	if all := files.Match("/var/lib/bundle*"); len(all) != 1 {
		t.Errorf("files: %q", all)
	}
}

// TestEachHostFetchesItsPart: of a bundle of two architectures, a host gets one.
func TestEachHostFetchesItsPart(t *testing.T) {
	path := writeBundle(t, "amd64", "arm64")
	c := serve(t, path, nil)
	for _, arch := range []string{"amd64", "arm64"} {
		files := host.Files{Root: t.TempDir()}
		fetched(t, client(t, arch, c), files)
		b, err := bundle.Open(files.Path("/var/lib/bundle"))
		must.NoError(t, err)
		defer b.Close()
		if got := strings.Join(b.Archs(), " "); got != arch {
			t.Errorf("a host of %s got %s", arch, got)
		}
	}
	// A further control plane serves what it has, and not what it lacks.
	files := host.Files{Root: t.TempDir()}
	fetched(t, client(t, "arm64", c), files)
	second := serve(t, files.Path("/var/lib/bundle"), nil)
	fetched(t, client(t, "arm64", second), host.Files{Root: t.TempDir()})
	_, err := client(t, "amd64", second).FirstOffer(t.Context())
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "for arm64, not for amd64") {
		t.Errorf("got %v", err)
	}
	// The first one has both.
	fetched(t, client(t, "amd64", second, c), host.Files{Root: t.TempDir()})
}

// TestABrokenTransferResumes: after each break only the rest is sent, also from another control plane.
func TestABrokenTransferResumes(t *testing.T) {
	path := writeBundle(t, "amd64")
	info, err := os.Stat(path)
	must.NoError(t, err)
	var breaks atomic.Int64
	cut := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") == "" || breaks.Add(1) > 3 {
			return true
		}
		c, err := bundle.Open(path)
		must.NoError(t, err)
		defer c.Close()
		w.Header().Set("Etag", tag(c))
		http.ServeContent(&cutShort{ResponseWriter: w, left: info.Size() / 8}, r, "", time.Time{}, bundle.Content(c))
		panic(http.ErrAbortHandler)
	}
	files := host.Files{Root: t.TempDir()}
	one, other := serve(t, path, cut), serve(t, path, cut)
	fetched(t, client(t, "amd64", one, other), files)
	if breaks.Load() != 4 {
		t.Errorf("%d requests", breaks.Load())
	}
	if sent := one.sent.Load() + other.sent.Load(); sent > info.Size()+info.Size()/2 {
		t.Errorf("%d bytes of %d were sent after the breaks", sent, info.Size())
	}
}

// cutShort ends an answer after some bytes.
type cutShort struct {
	http.ResponseWriter
	left int64
}

func (c *cutShort) Write(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.ErrClosedPipe
	}
	n, err := c.ResponseWriter.Write(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// TestAKilledRunResumes: what it has received is not sent again. A part that a power failure has
// damaged is.
func TestAKilledRunResumes(t *testing.T) {
	path := writeBundle(t, "amd64")
	data := must.Read(t, path)
	b, err := bundle.Open(path)
	must.NoError(t, err)
	defer b.Close()
	half := int64(len(data) / 2)
	for name, c := range map[string]struct {
		left []byte
		most int64
	}{
		"whole":   {data[:half], half + half/2},
		"damaged": {make([]byte, half), 4 * half},
	} {
		files, server := host.Files{Root: t.TempDir()}, serve(t, path, nil)
		left := "/var/lib/bundle." + b.Identity().Encoded()[:12] + partial
		must.Write(t, files.Path(left), c.left)
		must.Write(t, files.Path("/var/lib/bundle.0123456789ab"+partial), "of another bundle")
		fetched(t, client(t, "amd64", server), files)
		if sent := server.sent.Load(); sent > c.most {
			t.Errorf("%s: %d bytes of %d were sent", name, sent, len(data))
		}
	}
}

func TestRefusals(t *testing.T) {
	path := writeBundle(t, "amd64")
	c := serve(t, path, nil)
	gone := serve(t, path+".gone", nil)
	with := func(change func(*Fetcher)) Fetcher { one := client(t, "amd64", c); change(&one); return one }
	token := func(token string) func(*Fetcher) {
		return func(one *Fetcher) {
			connect := one.Connect
			one.Connect = func(ctx context.Context) (*tls.Config, string, error) {
				config, _, err := connect(ctx)
				return config, token, err
			}
		}
	}
	for want, one := range map[string]Fetcher{
		"does not accept the token":      with(token("abcdef.9999999999999999")),
		"does not answer":                with(token("no API")),
		"of Kubernetes v1.30.0":          with(func(c *Fetcher) { c.Kubernetes = "v1.30.0" }),
		"not for s390x":                  with(func(c *Fetcher) { c.Arch = "s390x" }),
		"no bundle at " + path + ".gone": client(t, "amd64", gone),
		"connection refused": with(func(c *Fetcher) {
			c.Servers = func(context.Context) []string { return []string{"127.0.0.1:1"} }
		}),
		"certificate signed by unknown authority": with(func(c *Fetcher) {
			c.Connect = func(context.Context) (*tls.Config, string, error) {
				return &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}, good, nil
			}
		}),
		bundle.ErrUntrusted.Error(): with(func(c *Fetcher) { c.Options = []bundle.Option{signedByNobody} }),
		"no control plane has them": with(func(c *Fetcher) {
			c.Servers = func(context.Context) []string { return nil }
		}),
	} {
		_, err := one.FirstOffer(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrNone) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func signedByNobody(*bundle.Bundle) error { return bundle.ErrUntrusted }

// TestManyHostsAndSlowOnes: hosts that read nothing do not keep another one from the bundle.
func TestManyHostsAndSlowOnes(t *testing.T) {
	c := serve(t, writeBundle(t, "amd64"), nil)
	address := strings.TrimPrefix(c.URL, "https://")
	for range hosts.Connections - 2 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		must.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "GET ")
	}
	fetched(t, client(t, "amd64", c), host.Files{Root: t.TempDir()})
}

// TestOneHostLeavesTransfersToOthers: a host may read slowly for hours.
func TestOneHostLeavesTransfersToOthers(t *testing.T) {
	if transfers < 2*hosts.Connections {
		t.Errorf("one host can have %d of %d transfers", min(hosts.Connections, transfers), transfers)
	}
}
