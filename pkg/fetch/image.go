package fetch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Image looks up the image for a platform in its registry or a mirror.
func (c *Downloader) Image(ctx context.Context, ref string, platform v1.Platform) (*Found, error) {
	at, err := c.mirrors.find(ref)
	if err != nil {
		return nil, err
	}
	repo := at.Context()
	f := &Found{Name: ref, client: c, host: repo.RegistryStr()}
	if err := f.lookUp(ctx, at, platform); err != nil {
		return nil, explain(err, "image "+repo.RepositoryStr()+":"+at.Identifier(), f.host)
	}
	return f, nil
}

func (f *Found) lookUp(ctx context.Context, at name.Reference, platform v1.Platform) error {
	login, err := f.client.login(ctx, at.Context())
	if err != nil {
		return err
	}
	img, err := imageFor(at, platform, remote.WithContext(ctx), remote.WithTransport(login))
	if err != nil {
		return err
	}
	d, err := img.Digest()
	if err != nil {
		return err
	}
	f.Digest = digest.Digest(d.String())
	manifest, err := manifestOf(at, img)
	if err != nil {
		return err
	}
	repo := at.Context()
	for _, part := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		d := digest.Digest(part.Digest.String())
		if err := d.Validate(); err != nil {
			return fmt.Errorf("manifest of %s: %q: %w", at.Name(), part.Digest, err)
		}
		url := fmt.Sprintf("%s://%s/v2/%s/blobs/%s", repo.Scheme(), repo.RegistryStr(),
			repo.RepositoryStr(), part.Digest)
		f.blobs = append(f.blobs, blob{digest: d, size: part.Size, url: url, via: login})
	}
	return nil
}

// login returns a transport with Docker's credentials for a repository. It
// logs in once per repository.
func (c *Downloader) login(ctx context.Context, repo name.Repository) (http.RoundTripper, error) {
	if known, ok := c.logins.Load(repo.Name()); ok {
		return known.(http.RoundTripper), nil
	}
	auth, err := authn.Resolve(ctx, authn.DefaultKeychain, repo)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", repo.RegistryStr(), err)
	}
	made, err := transport.NewWithContext(ctx, repo.Registry, auth, c.transport,
		[]string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	c.logins.Store(repo.Name(), made)
	return made, nil
}

// imageFor returns the image for a platform. The reference may name an image
// or an index.
func imageFor(at name.Reference, platform v1.Platform, options ...remote.Option) (v1.Image, error) {
	found, err := remote.Get(at, options...)
	if err != nil {
		return nil, err
	}
	if !found.MediaType.IsIndex() {
		img, err := found.Image()
		if err != nil {
			return nil, err
		}
		if _, err := manifestOf(at, img); err != nil {
			return nil, err
		}
		config, err := img.ConfigFile()
		if err == nil && config.Architecture != platform.Architecture {
			err = noPlatform(at, platform, config.Architecture)
		}
		return img, err
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	chosen, err := choose(list.Manifests, at, platform)
	if err != nil {
		return nil, err
	}
	return index.Image(chosen)
}

// largestConfig is larger than the config of any image that is downloaded, in bytes. It is read
// into memory.
const largestConfig = 8 << 20

// manifestOf returns the manifest of an image, unless a size in it would fill the memory or the disk.
func manifestOf(at name.Reference, img v1.Image) (*v1.Manifest, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	if most := int64(largestConfig); manifest.Config.Size < 0 || manifest.Config.Size > most {
		return nil, tooLarge("the config of "+at.Name(), most)
	}
	for _, layer := range manifest.Layers {
		if most := int64(largestFile); layer.Size < 0 || layer.Size > most {
			return nil, tooLarge("layer "+layer.Digest.String()+" of "+at.Name(), most)
		}
	}
	return manifest, nil
}

// choose returns the manifest for a platform. It prefers the same variant,
// then no variant, then any.
func choose(all []v1.Descriptor, at name.Reference, platform v1.Platform) (v1.Hash, error) {
	var fitting []v1.Descriptor
	var has []string
	for _, d := range all {
		p := d.Platform
		switch {
		case p == nil || p.OS != platform.OS:
		case p.Architecture == platform.Architecture:
			fitting = append(fitting, d)
		case !slices.Contains(has, p.Architecture):
			has = append(has, p.Architecture)
		}
	}
	if len(fitting) == 0 {
		return v1.Hash{}, noPlatform(at, platform, strings.Join(has, ", "))
	}
	for _, variant := range []string{platform.Variant, ""} {
		if i := slices.IndexFunc(fitting, func(d v1.Descriptor) bool { return d.Platform.Variant == variant }); i >= 0 {
			return fitting[i].Digest, nil
		}
	}
	return fitting[0].Digest, nil
}

func noPlatform(at name.Reference, platform v1.Platform, has string) error {
	return &step.Problem{Name: "no-platform", Firm: true,
		Text:   fmt.Sprintf("%s does not exist for %s, only for %s", at.Name(), platform.Architecture, has),
		Remedy: "build it from source: `kube-bootstrap offline build --arch " + platform.Architecture + "`"}
}
