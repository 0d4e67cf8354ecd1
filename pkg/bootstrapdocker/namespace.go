package bootstrapdocker

import (
	"context"
	"errors"
	"fmt"
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
	if _, err := c.NamespaceService().Labels(ctx, name); err != nil {
		return ignoreNotFound(err)
	}
	in := namespaces.WithNamespace(ctx, name)
	err := removeContainers(in, c)
	if err == nil {
		err = imagestore.Empty(in, c)
	}
	if err != nil {
		return fmt.Errorf("containerd namespace %s: %w", name, err)
	}
	return ignoreNotFound(c.NamespaceService().Delete(ctx, name))
}

func removeContainers(ctx context.Context, c *containerd.Client) error {
	all, err := c.Containers(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		task, err := one.Task(ctx, nil)
		if err == nil {
			_, err = task.Delete(ctx, containerd.WithProcessKill) // waits for the end of all processes
		}
		if err = ignoreNotFound(err); err == nil {
			err = ignoreNotFound(one.Delete(ctx))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
