//go:build root

package containerd

import (
	"context"
	"testing"

	"github.com/containerd/containerd/v2/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheStateBeforeOfAnEmptyNamespace: a namespace of somebody else without an
// image is recorded like one with images.
func TestTheStateBeforeOfAnEmptyNamespace(t *testing.T) {
	_, socket := dockertest.Start(t)
	p := Pods{Files: host.Files{Root: t.TempDir()}, Socket: Socket(socket)}
	must.NoError(t, p.Socket.with(t.Context(), func(ctx context.Context, c *client.Client) error {
		return c.NamespaceService().Create(ctx, namespace, nil)
	}))
	must.NoError(t, p.note(t.Context()))
	if b, err := beforeRecord.Read(p.Files); err != nil || !b.Namespace || len(b.Images) > 0 {
		t.Errorf("got %+v, %v", b, err)
	}
}
