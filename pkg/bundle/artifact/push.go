package artifact

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// pushJobs is the number of blobs that are uploaded concurrently.
const pushJobs = 4

// Pushed is an image in a registry.
type Pushed struct {
	Ref    string        `json:"ref"`
	Digest digest.Digest `json:"digest"`
}

// Push uploads all images, for every architecture, to a registry: each image to
// its own repository, with compressed layers. It skips what the registry already
// has, so the next run completes an interrupted one.
func Push(ctx context.Context, b *bundle.Bundle, to *registry.Registry) ([]Pushed, error) {
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
	p := push{from: b, to: to, options: remotes, pusher: pusher}
	pushed, err := p.all(ctx)
	return pushed, to.Explain(err)
}

type push struct {
	from    *bundle.Bundle
	to      *registry.Registry
	options []remote.Option
	pusher  *remote.Pusher
}

// all uploads the index last: hosts rely on all that it names.
func (p push) all(ctx context.Context) ([]Pushed, error) {
	if s, ok := p.known(ctx); ok {
		if missing, err := p.missing(ctx, s); err != nil || len(missing) == 0 {
			return p.pushed(s), err
		}
	}
	s := stored{
		Layers: map[digest.Digest]compressedBlob{}, Indexes: map[string]digest.Digest{},
		Manifests: map[digest.Digest]string{},
	}
	layers, err := p.compress(ctx, p.allLayers(), s)
	defer layers.close()
	if err != nil {
		return nil, err
	}
	images, err := p.rewrite(s)
	if err != nil {
		return nil, err
	}
	missing, err := p.missing(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := p.blobs(ctx, missing, layers); err != nil {
		return nil, err
	}
	for _, img := range missing {
		if err := p.manifests(ctx, img, images[img.Ref]); err != nil {
			return nil, fmt.Errorf("push %s: %w", img.Ref, err)
		}
	}
	return p.pushed(s), p.index(ctx, s)
}

// rewrite returns the images as the registry stores them, by reference, and
// records their indexes.
func (p push) rewrite(s stored) (map[string]registryImage, error) {
	images := map[string]registryImage{}
	for _, img := range p.from.Manifest.Images {
		rewritten, err := s.rewrite(p.from, img)
		if err != nil {
			return nil, fmt.Errorf("push %s: %w", img.Ref, err)
		}
		images[img.Ref], s.Indexes[img.Ref] = rewritten, digest.FromBytes(rewritten.index)
	}
	return images, nil
}

func (p push) pushed(s stored) []Pushed {
	var pushed []Pushed
	for _, img := range p.from.Manifest.Images {
		if tag, err := p.tag(img); err == nil { // missing has parsed the same tag
			pushed = append(pushed, Pushed{tag.Name(), s.Indexes[img.Ref]})
		}
	}
	return pushed
}

// known returns how this bundle is stored in the registry, if it was pushed
// before.
func (p push) known(ctx context.Context) (stored, bool) {
	found, err := readIndex(ctx, p.to, p.from.Manifest.Versions.Kubernetes)
	if err != nil { // absent or unreadable: the push itself reports why
		return stored{}, false
	}
	manifest, signature := p.from.Members()
	return found.stored, bytes.Equal(found.manifest, manifest) && bytes.Equal(found.signature, signature)
}

func (p push) tag(img bundle.MultiPlatformImage) (name.Tag, error) {
	path, tag := inRegistry(img.Ref)
	repo, err := p.to.Repository(path)
	return repo.Tag(tag), err
}

// missing returns the images that the registry lacks, or has with other content.
func (p push) missing(ctx context.Context, s stored) ([]bundle.MultiPlatformImage, error) {
	var missing []bundle.MultiPlatformImage
	for _, img := range p.from.Manifest.Images {
		tag, err := p.tag(img)
		if err != nil {
			return nil, err
		}
		found, err := remote.Head(tag, p.options...)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// Absent or unreadable: the push itself reports why.
		if err != nil || found.Digest.String() != s.Indexes[img.Ref].String() {
			missing = append(missing, img)
		}
	}
	return missing, nil
}

func (p push) allLayers() []digest.Digest {
	var all []digest.Digest
	for _, img := range p.from.Manifest.Images {
		for _, platform := range img.Platforms {
			all = append(all, platform.Layers...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// blobs uploads each layer once, several at a time. For further repositories it
// requests a mount from the first one. The configs are uploaded together with
// the manifests.
func (p push) blobs(ctx context.Context, images []bundle.MultiPlatformImage, layers layerFiles) error {
	repos := map[digest.Digest][]string{} // by digest of the uncompressed layer
	var total int64
	for _, img := range images {
		path, _ := inRegistry(img.Ref)
		for _, platform := range img.Platforms {
			for _, d := range platform.Layers {
				if len(repos[d]) == 0 {
					total += layers[d].blob.Size
				}
				if !slices.Contains(repos[d], path) {
					repos[d] = append(repos[d], path)
				}
			}
		}
	}
	progress := step.NewCounter(ctx, "push to "+p.to.Address, total)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pushJobs)
	for _, d := range slices.Sorted(maps.Keys(repos)) {
		group.Go(func() error {
			return step.Wrap(p.layer(ctx, &compressedLayer{layerFile: layers[d], progress: progress}, repos[d]),
				"push layer %s", layers[d].blob.Digest)
		})
	}
	return group.Wait()
}

func (p push) layer(ctx context.Context, file *compressedLayer, paths []string) error {
	layer, err := partial.CompressedToLayer(file)
	if err != nil {
		return err
	}
	var first name.Repository
	for i, path := range paths {
		repo, err := p.to.Repository(path)
		if err != nil {
			return err
		}
		up := layer
		if i == 0 {
			first = repo
		} else {
			up = &remote.MountableLayer{Layer: layer, Reference: first.Digest(file.blob.Digest.String())}
		}
		if err := p.pusher.Upload(ctx, repo, up); err != nil {
			return err
		}
	}
	file.add(file.blob.Size) // what the registry already had
	return nil
}

// manifests uploads the config and the manifest of each architecture, then the index, and
// verifies that the registry returns the index under its digest.
func (p push) manifests(ctx context.Context, img bundle.MultiPlatformImage, rewritten registryImage) error {
	tag, err := p.tag(img)
	if err != nil {
		return err
	}
	for d, raw := range rewritten.manifests {
		if err := p.manifest(ctx, tag.Context().Digest(d.String()), raw); err != nil {
			return err
		}
	}
	if err := p.pusher.Push(ctx, tag, rawManifest{types.OCIImageIndex, rewritten.index}); err != nil {
		return err
	}
	found, err := remote.Head(tag, p.options...)
	if err != nil {
		return err
	}
	if want := digest.FromBytes(rewritten.index); found.Digest.String() != want.String() {
		return fmt.Errorf("the registry returns digest %s for the index, but the pushed index has %s",
			found.Digest, want)
	}
	return nil
}

func (p push) manifest(ctx context.Context, at name.Digest, raw []byte) error {
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	config, err := p.from.ReadText(digest.Digest(m.Config.Digest.String()))
	if err != nil {
		return err
	}
	if err := p.pusher.Upload(ctx, at.Context(), static.NewLayer(config, m.Config.MediaType)); err != nil {
		return err
	}
	return p.pusher.Push(ctx, at, rawManifest{types.OCIManifestSchema1, raw})
}

// index uploads the manifest of the bundle, so that a host needs only the
// registry.
func (p push) index(ctx context.Context, s stored) error {
	repo, err := p.to.Repository(IndexPath)
	if err != nil {
		return err
	}
	artifact, err := p.artifact(s)
	if err != nil {
		return err
	}
	return p.pusher.Push(ctx, repo.Tag(p.from.Manifest.Versions.Kubernetes), artifact)
}
