//go:build root

package offline

import (
	"context"
	"errors"
	"strings"
	"testing"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// withContainerd calls do with a client in the namespace of the kubelet.
func withContainerd(ctx context.Context, socket string, do func(context.Context, *containerd.Client) error) error {
	c, err := containerd.New(socket)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(namespaces.WithNamespace(ctx, "k8s.io"), c)
}

func containerdWorld(t *testing.T, socket string, files func() string) func() string {
	return func() string {
		var b strings.Builder
		err := withContainerd(t.Context(), socket, func(ctx context.Context, c *containerd.Client) error {
			all, err := c.ImageService().List(ctx)
			for _, i := range all {
				b.WriteString(i.Name + " " + i.Target.Digest.String() + "\n")
			}
			return err
		})
		must.NoError(t, err)
		return b.String() + files()
	}
}

func noContent(ctx context.Context, socket string) error {
	return withContainerd(ctx, socket, func(ctx context.Context, c *containerd.Client) error {
		return c.ContentStore().Walk(ctx,
			func(i content.Info) error { return errors.New("blob " + i.Digest.String() + " is left") })
	})
}
