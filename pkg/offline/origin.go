package offline

import (
	"context"
	"fmt"
	"io"
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
	// plugins are the CNI plugins for an architecture, and pluginLayer is the
	// tar that they are in.
	plugins(arch string) (Plugins, error)
	pluginLayer(ctx context.Context, p Plugins) io.ReadCloser
	Close() error
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

func (b *Bundle) plugins(arch string) (Plugins, error) {
	all, ok := b.Plugins[arch]
	if !ok {
		return all, fmt.Errorf("bundle %s holds no CNI plugins for %s", b.Path, arch)
	}
	return all, nil
}

func (b *Bundle) pluginLayer(_ context.Context, p Plugins) io.ReadCloser {
	return piped(func(w io.Writer) error { return b.copyBlob(w, p.Layer) })
}
