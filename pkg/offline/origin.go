package offline

import (
	"context"
	"fmt"
	"io"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cniplugins"
)

// origin is what images are taken from: a bundle, be it a file or in a
// registry, or a Docker that has them.
type origin interface {
	// find returns the entry of a reference for an architecture.
	find(ref, arch string) (Entry, error)
	// check finds damage before anything is loaded.
	check(ctx context.Context, entries []Entry, arch string) error
	// read makes ready to read those images, with progress.
	read(ctx context.Context, entries []Entry, arch string) archives
	cniplugins.Source
}

// archives are images on their way into a store.
type archives interface {
	open(entries ...Entry) io.ReadCloser
	// failed is what was wrong with the origin: a store says only that its
	// input ended.
	failed() error
}

// origin opens what the images are taken from.
func (s Source) origin(ctx context.Context) (origin, error) {
	if s.Docker != nil {
		return s.fromDocker(ctx)
	}
	bundle, err := s.open(ctx)
	if err != nil {
		return nil, err // and no origin that holds no bundle
	}
	return bundle, nil
}

func (s Source) open(ctx context.Context) (*Bundle, error) {
	if s.Registry != nil {
		return OpenRegistry(ctx, s.Registry, s.Versions.Kubernetes, SignedBy(s.VerifyKey))
	}
	return s.Open()
}

// asks reports whether looking into the origin for files takes time, or it may
// be away: then those that are there by their names are good enough.
func (s Source) asks() bool { return s.Registry != nil || s.Docker != nil }

func (b *Bundle) find(ref, arch string) (Entry, error) {
	e, err := b.Manifest.find(ref, arch)
	if err != nil {
		return e, fmt.Errorf("bundle %s: %w", b.Path, err)
	}
	return e, nil
}

// CNIPlugins implements cniplugins.Source.
func (b *Bundle) CNIPlugins(arch string) (map[string]digest.Digest, error) {
	all, ok := b.Plugins[arch]
	if !ok {
		return nil, fmt.Errorf("bundle %s holds no CNI plugins for %s", b.Path, arch)
	}
	return all.Files, nil
}

// ReadCNIPlugins implements cniplugins.Source. The archive is the layer that
// contains the plugins.
func (b *Bundle) ReadCNIPlugins(_ context.Context, arch string, _ []string) io.ReadCloser {
	return piped(func(w io.Writer) error { return b.copyBlob(w, b.Plugins[arch].Layer) })
}
