package containerd

import (
	"context"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
)

// ownerLabel marks containerd's namespace of pods if kube-bootstrap created
// it. Undo then removes the whole namespace, also if all records are lost.
const ownerLabel = "kube-bootstrap.dev/owner"

func (s Socket) countContainers(ctx context.Context) (n int, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.Containers(ctx)
		n = len(all)
		return err
	})
	return n, err
}

func (s Socket) imageNames(ctx context.Context) (names []string, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.ImageService().List(ctx)
		for _, one := range all {
			names = append(names, one.Name)
		}
		return err
	})
	return names, err
}

// removeImages removes the images that did not exist before: the whole
// namespace, or single images. containerd collects their content with the
// last image.
func (s Socket) removeImages(ctx context.Context, b before) error {
	if !b.Namespace {
		return s.removeNamespace(ctx)
	}
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.ImageService().List(ctx)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(i images.Image) bool { return slices.Contains(b.Images, i.Name) })
		for i, one := range all {
			var options []images.DeleteOpt
			if i == len(all)-1 {
				options = append(options, images.SynchronousDelete())
			}
			if err := gone(c.ImageService().Delete(ctx, one.Name, options...)); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeNamespace removes containerd's namespace of pods with its content,
// including the content of an interrupted load.
func (s Socket) removeNamespace(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, c *client.Client) error {
		if err := imagestore.Empty(ctx, c); err != nil {
			return err
		}
		return gone(c.NamespaceService().Delete(ctx, namespace))
	})
}

// hasNamespace reports whether the namespace of pods exists, and whether
// kube-bootstrap created it.
func (s Socket) hasNamespace(ctx context.Context) (is, made bool, err error) {
	err = s.with(ctx, func(ctx context.Context, c *client.Client) error {
		all, err := c.NamespaceService().List(ctx)
		if is = slices.Contains(all, namespace); !is || err != nil {
			return err
		}
		labels, err := c.NamespaceService().Labels(ctx, namespace)
		made = labels[ownerLabel] != ""
		return gone(err)
	})
	return is, made, err
}

// Left lists the pods that remain in a namespace with ownerLabel.
func (s Socket) Left(ctx context.Context) ([]string, error) {
	_, made, err := s.hasNamespace(ctx)
	if err != nil || !made {
		return nil, err
	}
	n, err := s.countContainers(ctx)
	if n == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d containers of pods in containerd's namespace %s", n, namespace)}, err
}
