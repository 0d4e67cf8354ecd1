package bootstrapdocker

import (
	"context"
	"errors"
	"os"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/imagestore"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// emptyNamespaces removes the daemon's namespaces from containerd with their
// content. It does nothing if containerd does not run.
func emptyNamespaces(ctx context.Context) error {
	if _, err := os.Stat(containerdSocket); err != nil {
		return nil
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	c, err := containerd.New(containerdSocket, containerd.WithTimeout(step.CheckLimit(ctx)))
	if err != nil {
		return nil
	}
	defer c.Close()
	if serving, err := c.IsServing(ctx); err != nil || !serving {
		return nil
	}
	return errors.Join(emptyNamespace(ctx, c, namespace), emptyNamespace(ctx, c, pluginsNamespace))
}

func emptyNamespace(ctx context.Context, c *containerd.Client, name string) error {
	_, err := c.NamespaceService().Labels(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = imagestore.RemoveContainers(namespaces.WithNamespace(ctx, name), c)
	}
	if err == nil {
		err = imagestore.RemoveNamespace(ctx, c, name)
	}
	return step.Wrap(err, "containerd namespace %s", name)
}
