package host

import (
	"context"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// ImageLayers returns the diff IDs of the image with that reference: none if
// it, or the engine, is not there. They say what an image holds, whichever
// kind of store the engine uses.
func (d *Docker) ImageLayers(ctx context.Context, ref string) ([]string, error) {
	found, err := d.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return nil, nil
	}
	return found.RootFS.Layers, err
}
