package imagestore

import (
	"context"
	"errors"
	"io"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/platforms"
	"golang.org/x/sync/errgroup"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// LoadArchive loads the images of an archive, as Docker saves it, into the containerd of the pods, which
// listens on the socket, and into Docker. Until both have read it, the archive is in an unlinked file in
// dir. The garbage collection of the kubelet may remove the images, unlike those of a bundle.
func LoadArchive(ctx context.Context, socket string, engine *docker.Engine, dir string, archive io.Reader) error {
	file, err := host.UnnamedFile(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := io.Copy(file, archive)
	if err == nil && size == 0 {
		err = errors.New("the archive is empty")
	}
	if err != nil {
		return step.Wrap(err, "receive the archive")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return engine.Images().Load(ctx, io.NewSectionReader(file, 0, size)) })
	group.Go(func() error {
		pods := containerdStore{socket: socket}
		return step.Wrap(pods.importArchive(ctx, io.NewSectionReader(file, 0, size)), "import into containerd")
	})
	return group.Wait()
}

// importArchive imports and unpacks images for the platform of this host. An archive of a Docker that
// stores images in containerd may name other platforms whose content it does not have.
func (s containerdStore) importArchive(ctx context.Context, archive io.Reader) error {
	return s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		loaded, err := c.Import(ctx, archive, containerd.WithSkipMissing())
		if err != nil {
			return err
		}
		return s.withSnapshotter(ctx, c).unpack(ctx, c, loaded, platforms.Default())
	})
}
