package offline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// pushJobs is how many blobs go to a registry at the same time.
const pushJobs = 4

// Pushed is an image as it lies in a registry.
type Pushed struct {
	Ref    string        `json:"ref"`
	Digest digest.Digest `json:"digest"`
}

// Push brings all images of a bundle, of every architecture, into a registry:
// each under its own path, with the digest it has in the bundle. What is there
// already stays, so a run that was cut short is finished by the next.
func Push(ctx context.Context, path string, to *registry.Registry, options ...Option) ([]Pushed, error) {
	b, err := Open(path, options...)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := to.Check(ctx, IndexPath, true); err != nil {
		return nil, err
	}
	remotes, err := to.Options(ctx)
	if err != nil {
		return nil, err
	}
	pusher, err := remote.NewPusher(remotes...)
	if err != nil {
		return nil, err
	}
	p := push{Bundle: b, to: to, options: remotes, pusher: pusher}
	pushed, err := p.all(ctx)
	return pushed, to.Explain(err)
}

type push struct {
	*Bundle
	to      *registry.Registry
	options []remote.Option
	pusher  *remote.Pusher
}

// all has the index last: with it there, a host trusts the rest to be.
func (p push) all(ctx context.Context) ([]Pushed, error) {
	missing, err := p.missing(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.blobs(ctx, missing); err != nil {
		return nil, err
	}
	for _, e := range missing {
		if err := p.manifests(ctx, e); err != nil {
			return nil, fmt.Errorf("push %s: %w", e.Ref, err)
		}
	}
	var pushed []Pushed
	for _, e := range p.Images {
		tag, err := p.tag(e)
		if err != nil {
			return nil, err
		}
		pushed = append(pushed, Pushed{tag.Name(), e.Index})
	}
	return pushed, p.index(ctx)
}

func (p push) tag(e Entry) (name.Tag, error) {
	path, tag := inRegistry(e.Ref)
	repo, err := p.to.Repository(path)
	return repo.Tag(tag), err
}

// missing are the images that the registry does not have, or has otherwise.
func (p push) missing(ctx context.Context) ([]Entry, error) {
	var missing []Entry
	for _, e := range p.Images {
		tag, err := p.tag(e)
		if err != nil {
			return nil, err
		}
		found, err := remote.Head(tag, p.options...)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// Not there, or not to be told: the push itself will show.
		if err != nil || found.Digest.String() != e.Index.String() {
			missing = append(missing, e)
		}
	}
	return missing, nil
}

// blobs uploads each blob once, several at a time; to further repositories
// that need it the registry itself links it.
func (p push) blobs(ctx context.Context, entries []Entry) error {
	repos := map[digest.Digest][]string{}
	var total int64
	for _, e := range entries {
		path, _ := inRegistry(e.Ref)
		for _, v := range e.Variants {
			for _, d := range append([]digest.Digest{v.Config}, v.Layers...) {
				if len(repos[d]) == 0 {
					total += p.Blobs[d].Size
				}
				if !slices.Contains(repos[d], path) {
					repos[d] = append(repos[d], path)
				}
			}
		}
	}
	progress := newProgress(ctx, "push to "+p.to.Address, total)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pushJobs)
	for _, d := range slices.Sorted(maps.Keys(repos)) {
		group.Go(func() error {
			if err := p.blob(ctx, d, repos[d], progress); err != nil {
				return fmt.Errorf("push blob %s: %w", d, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (p push) blob(ctx context.Context, d digest.Digest, paths []string, progress *progress) error {
	blob := &bundleBlob{b: p.Bundle, digest: d, progress: progress}
	layer, err := blob.layer()
	if err != nil {
		return err
	}
	for i, path := range paths {
		repo, err := p.to.Repository(path)
		if err != nil {
			return err
		}
		up := layer
		if i > 0 {
			first, err := p.to.Repository(paths[0])
			if err != nil {
				return err
			}
			up = &remote.MountableLayer{Layer: layer, Reference: first.Digest(d.String())}
		}
		if err := p.pusher.Upload(ctx, repo, up); err != nil {
			return err
		}
	}
	blob.count()
	return nil
}

// manifests puts those of each architecture, then the list of them, and sees
// that the registry keeps it under the digest that it has in the bundle.
func (p push) manifests(ctx context.Context, e Entry) error {
	tag, err := p.tag(e)
	if err != nil {
		return err
	}
	index, err := p.imageIndex(e)
	if err != nil {
		return err
	}
	if err := p.pusher.Push(ctx, tag, index); err != nil {
		return err
	}
	found, err := remote.Head(tag, p.options...)
	if err != nil {
		return err
	}
	if found.Digest.String() != e.Index.String() {
		return fmt.Errorf("the registry has it as %s, the bundle as %s", found.Digest, e.Index)
	}
	return nil
}

// index puts what the bundle says of itself, so that a host can be made from
// the registry alone.
func (p push) index(ctx context.Context) error {
	repo, err := p.to.Repository(IndexPath)
	if err != nil {
		return err
	}
	artifact, err := p.artifact()
	if err != nil {
		return err
	}
	return p.pusher.Push(ctx, repo.Tag(p.Versions.Kubernetes), artifact)
}
