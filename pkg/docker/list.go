package docker

import (
	"context"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// NameOf returns the name of a container, or its ID if it has none.
func NameOf(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID[:min(12, len(c.ID))]
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// HostContainers lists the containers of kube-bootstrap that belong to no cluster.
func (d *Engine) HostContainers(ctx context.Context) (names []string, err error) {
	list, err := d.ContainerList(ctx, client.ContainerListOptions{All: true})
	for _, c := range list.Items {
		if c.Labels[OurLabel] != "" && c.Labels[ClusterLabel] == "" {
			names = append(names, NameOf(c))
		}
	}
	return names, err
}
