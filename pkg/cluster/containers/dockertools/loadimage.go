package dockertools

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// LoadImage copies images into all running nodes, either from the engine that
// runs the nodes or from the Docker of one node.
func LoadImage(
	ctx context.Context, options session.Selection, from string, images []string, emit func(session.HostEvent),
) error {
	scope := session.Requirements{Needs: session.Nodes, Lock: session.ClusterLock, Emit: emit}
	return containers.Do(ctx, options, scope, func(c containers.Cluster, state topology.State) error {
		source, err := sourceOf(c, state, from)
		if err != nil {
			return err
		}
		return tools.LoadImage(ctx, c.Session, state, source, images)
	})
}

func sourceOf(c containers.Cluster, state topology.State, node string) (tools.ImageSource, error) {
	if node != "" {
		return tools.ImagesOf(c.Session, state, node)
	}
	return tools.ImageSource{Name: "the engine", Has: c.Engine.Images().Has, Save: c.Engine.Images().Save}, nil
}
