package fetch

import (
	"context"
	"slices"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// Found is an image or a file that was looked up: what it consists of, and
// where that is.
type Found struct {
	Name   string        // "registry.k8s.io/etcd:3.6.8-0", mirror or not, or an address
	Digest digest.Digest // of the manifest for the platform, or of the file

	client *Client
	host   string // who was asked
	blobs  []blob // of an image: its config, then its layers
}

// Here reports whether all of it is in the cache.
func (f *Found) Here() bool {
	return !slices.ContainsFunc(f.Paths(), func(path string) bool { return !there(path) })
}

// Paths are where it lies in the cache once it is fetched: the file, or the
// config and the layers, packed as they came.
func (f *Found) Paths() (all []string) {
	for _, b := range f.blobs {
		all = append(all, f.client.path(b.digest))
	}
	return all
}

// Fetch brings into the cache what is not there yet.
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
