package machines

import (
	"context"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// Attached is the observed state of a helper container of a cluster.
type Attached struct {
	docker.Attachment
	Running bool
}

// Attached returns a helper container of the cluster; ok is false if it does not
// exist.
func (c Objects) Attached(ctx context.Context, name string) (at Attached, ok bool, err error) {
	now, err := c.Engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	found := now.Container
	if errdefs.IsNotFound(err) || err == nil && found.Config.Labels[docker.ClusterLabel] != c.Name {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	at.Running, at.Cluster, at.Network = found.State.Running, c.Name, string(found.HostConfig.NetworkMode)
	at.Addr, at.Ports = docker.AddrIn(found.NetworkSettings.Networks), map[uint16]uint16{}
	for inside, outside := range found.HostConfig.PortBindings {
		for _, one := range outside {
			port, err := strconv.ParseUint(one.HostPort, 10, 16)
			if err != nil {
				return at, false, err
			}
			at.Ports[inside.Num()], at.HostIP = uint16(port), one.HostIP
		}
	}
	return at, true, nil
}
