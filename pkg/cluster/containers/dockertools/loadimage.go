package dockertools

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
	return engineSource(c.Engine), nil
}

func engineSource(e *docker.Engine) tools.ImageSource {
	return tools.ImageSource{Name: "the engine", Has: e.Images().Has, Save: e.Images().Save}
}

// OwnImages returns the Docker that the docker command of this machine uses as a source.
func OwnImages(ctx context.Context) (tools.ImageSource, error) {
	engine, err := docker.Choice{}.Open()
	if err == nil {
		_, _, err = engine.Version(ctx)
	}
	if err != nil {
		return tools.ImageSource{}, &step.Problem{
			Name: "engine", Text: fmt.Sprintf("this machine has no Docker with the images: %v", err), Firm: true,
			Remedy: "name by --from a node whose Docker has them, or set DOCKER_HOST",
		}
	}
	return engineSource(engine), nil
}
