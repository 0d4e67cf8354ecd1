package machines

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// LoadImage copies images into all machines that answer: from the Docker of a node, or if from is "" from
// that of this machine.
func LoadImage(
	ctx context.Context, o session.Selection, from string, own func(context.Context) (tools.ImageSource, error),
	images []string, emit func(session.HostEvent),
) error {
	return do(ctx, o, emit, func(c change) (err error) {
		var source tools.ImageSource
		if from == "" {
			source, err = own(ctx)
		} else {
			source, err = tools.ImagesOf(c.session, c.state, from)
		}
		if err != nil {
			return err
		}
		return tools.LoadImage(ctx, c.session, topology.Observed(c.state.Running()), source, images)
	})
}
