package offline

import (
	"context"
	"fmt"
	"slices"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// criNamespace is where the kubelet's images lie.
const criNamespace = "k8s.io"

// criLabels make an image known to CRI, and keep the kubelet from collecting
// it: on a host without a registry it would never come back.
var criLabels = map[string]string{"io.cri-containerd.image": "managed", "io.cri-containerd.pinned": "pinned"}

type containerdStore struct{ socket, snapshotter string }

// ContainerdStore is the store of the containerd behind a socket. An empty
// snapshotter is containerd's default.
func ContainerdStore(socket, snapshotter string) Target { return containerdStore{socket, snapshotter} }

func (s containerdStore) Kind() image.Store { return image.Containerd }

func (s containerdStore) with(ctx context.Context, do func(context.Context, *containerd.Client) error) error {
	c, err := containerd.New(s.socket, containerd.WithTimeout(10*time.Second))
	if err != nil {
		return fmt.Errorf("connect to containerd at %s: %w", s.socket, err)
	}
	defer c.Close()
	return do(namespaces.WithNamespace(ctx, criNamespace), c)
}

func (s containerdStore) State(ctx context.Context, e Entry, v Variant) (state State, err error) {
	if !answers(s.socket) {
		return Absent, nil
	}
	err = s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		found, err := c.ImageService().Get(ctx, e.Ref)
		switch {
		case errdefs.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case v.Manifest == "" && len(v.Layers) > 0:
			state, err = sameLayers(ctx, containerd.NewImage(c, found), v.Layers)
			return err
		case v.Manifest == "" || found.Target.Digest == v.Manifest || found.Target.Digest == e.Index:
			state = Same
		default:
			state = Other
		}
		return nil
	})
	return state, err
}

// sameLayers compares an image that came another way, and so has another
// manifest. One that is not whole counts as absent.
func sameLayers(ctx context.Context, img containerd.Image, want []digest.Digest) (State, error) {
	layers, err := img.RootFS(ctx)
	switch {
	case errdefs.IsNotFound(err):
		return Absent, nil
	case err != nil:
		return Absent, err
	case slices.Equal(layers, want):
		return Same, nil
	}
	return Other, nil
}

// Load imports the images and unpacks them, so that the first pod does not
// wait for that: all at the same time, as each waits for the disk.
func (s containerdStore) Load(ctx context.Context, open Stream, entries []Entry) error {
	return s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		ctx, done, err := c.WithLease(ctx)
		if err != nil {
			return err
		}
		// A lease that stays runs out by itself, after a day.
		defer func() { _ = done(context.WithoutCancel(ctx)) }()
		archive := open(entries...)
		defer archive.Close()
		loaded, err := c.Import(ctx, archive, containerd.WithImageLabels(criLabels), containerd.WithImportPlatform(platforms.All))
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		group, ctx := errgroup.WithContext(ctx)
		for _, img := range loaded {
			group.Go(func() error {
				if err := containerd.NewImageWithPlatform(c, img, platforms.All).Unpack(ctx, s.snapshotter); err != nil {
					return fmt.Errorf("unpack %s: %w", img.Name, err)
				}
				return nil
			})
		}
		return group.Wait()
	})
}

func (s containerdStore) Remove(ctx context.Context, refs []string) error {
	if !answers(s.socket) {
		return fmt.Errorf("containerd does not answer at %s, so that its images can not be removed; start it and try again", s.socket)
	}
	return s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		for _, ref := range refs {
			if err := removeImage(ctx, c, ref); err != nil {
				return fmt.Errorf("remove image %s: %w", ref, err)
			}
		}
		return nil
	})
}

// removeImage removes a reference, and the name that CRI gives an image by its
// config, which would hold the content otherwise.
func removeImage(ctx context.Context, c *containerd.Client, ref string) error {
	found, err := c.GetImage(ctx, ref)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names := []string{ref}
	if config, err := found.Config(ctx); err == nil {
		names = append([]string{config.Digest.String()}, names...)
	}
	for _, name := range names {
		if err := c.ImageService().Delete(ctx, name, images.SynchronousDelete()); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	return nil
}
