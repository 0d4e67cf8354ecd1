package fetch

import (
	"context"
	"slices"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// Found is an image or a file that was looked up: its blobs and their URLs.
type Found struct {
	Name   string        // "registry.k8s.io/etcd:3.6.8-0", without the mirror, or a URL
	Digest digest.Digest // of the manifest for the platform, or of the file

	client *Client
	host   string // the host that was asked
	blobs  []blob // an image: the config, then the layers
}

// Here reports whether all blobs are in the cache.
func (f *Found) Here() bool {
	return !slices.ContainsFunc(f.Paths(), func(path string) bool { return !there(path) })
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
	progress := &counter{ctx: ctx}
	for _, b := range f.blobs {
		progress.expect(b.size)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, b := range f.blobs {
		group.Go(func() error { return f.client.blob(ctx, b, progress) })
	}
	return explain(group.Wait(), f.Name, f.host)
}
