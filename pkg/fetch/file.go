package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	digest "github.com/opencontainers/go-digest"
)

// checksumLimit is the maximum size of a checksum file in bytes.
const checksumLimit = 4 << 10

// File looks up a file whose SHA-512 is published as ADDRESS.sha512.
func (c *Client) File(ctx context.Context, address string) (*Found, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	d, err := c.checksum(ctx, address+".sha512")
	if err != nil {
		return nil, explain(err, address+".sha512", u.Host)
	}
	return &Found{Name: address, Digest: d, client: c, host: u.Host, blobs: []blob{{digest: d, url: address, via: c.transport}}}, nil
}

// checksum downloads a file that begins with a SHA-512 in hexadecimal.
func (c *Client) checksum(ctx context.Context, address string) (digest.Digest, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: c.transport}).Do(req)
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
	if err := d.Validate(); err != nil {
		return "", fmt.Errorf("%s does not begin with a SHA-512: %w", address, err)
	}
	return d, nil
}
