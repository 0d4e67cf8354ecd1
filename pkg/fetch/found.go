package fetch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Found is an image or a file that was looked up: its blobs and their URLs.
type Found struct {
	Name   string        // "registry.k8s.io/etcd:3.6.8-0", without the mirror, or a URL
	Digest digest.Digest // of the manifest for the platform, or of the file

	client *Downloader
	host   string // the host that was asked
	blobs  []blob // an image: the config, then the layers
	size   int64  // of a file as the server announces it; 0: unknown
}

// Missing returns the number of bytes that Fetch downloads. seen has the blobs of other
// images, which are not counted twice, and gets those of this one.
func (f *Found) Missing(seen map[digest.Digest]bool) (bytes int64) {
	for _, b := range f.blobs {
		if path := f.client.path(b.digest); seen[b.digest] || (host.Files{}).Exists(path) {
			continue
		}
		seen[b.digest] = true
		bytes += cmp.Or(b.size, f.size)
		if begun, err := os.Stat(f.client.partial(b.digest)); err == nil {
			bytes -= begun.Size()
		}
	}
	return max(bytes, 0)
}

// Here reports whether all blobs are in the cache.
func (f *Found) Here() bool {
	return !slices.ContainsFunc(f.Paths(), func(path string) bool { return !host.Files{}.Exists(path) })
}

// Paths returns the paths of the blobs in the cache: the file, or the config
// and the layers as they were compressed in the registry.
func (f *Found) Paths() (all []string) {
	for _, b := range f.blobs {
		all = append(all, f.client.path(b.digest))
	}
	return all
}

// Fetch downloads the blobs that are not in the cache.
func (f *Found) Fetch(ctx context.Context) error {
	progress := step.NewCounter(ctx, "", 0)
	for _, b := range f.blobs {
		progress.Expect(b.size)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, b := range f.blobs {
		group.Go(func() error { return f.client.blob(ctx, b, progress) })
	}
	return explain(group.Wait(), f.Name, f.host)
}

// checksumLimit is the maximum size of a checksum file in bytes.
const checksumLimit = 4 << 10

// File looks up a file whose SHA-512 is published as ADDRESS.sha512.
func (c *Downloader) File(ctx context.Context, address string) (*Found, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	d, err := c.checksum(ctx, address+".sha512")
	if err != nil {
		return nil, explain(err, address+".sha512", u.Host)
	}
	return &Found{Name: address, Digest: d, client: c, host: u.Host,
		blobs: []blob{{digest: d, url: address, via: c.transport}}}, nil
}

// AskSize asks for the size of a file, which Missing then includes. It remains unknown if the
// server does not answer such a request. The size of an image is in its manifest.
func (f *Found) AskSize(ctx context.Context) {
	if len(f.blobs) != 1 || f.blobs[0].size > 0 {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, f.blobs[0].url, http.NoBody)
	if err != nil {
		return
	}
	resp, err := (&http.Client{Transport: f.client.once}).Do(req)
	if err != nil {
		return
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		f.size = max(resp.ContentLength, 0)
	}
}

// checksum downloads a file that begins with a SHA-512 in hexadecimal.
func (c *Downloader) checksum(ctx context.Context, address string) (digest.Digest, error) {
	resp, err := link.GetFrom(ctx, &http.Client{Transport: c.transport}, address, 0)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, checksumLimit))
	if err != nil {
		return "", err
	}
	words := bytes.Fields(text)
	if len(words) == 0 {
		return "", fmt.Errorf("%s is empty", address)
	}
	d := digest.NewDigestFromEncoded(digest.SHA512, string(bytes.ToLower(words[0])))
	return d, step.Wrap(d.Validate(), "%s does not begin with a SHA-512", address)
}
