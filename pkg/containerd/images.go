package containerd

import (
	"context"

	"github.com/containerd/containerd/v2/client"
)

// FollowImages calls tell when it begins, and whenever an image of pods is
// removed, until ctx or containerd ends.
func (r Runtime) FollowImages(ctx context.Context, tell func()) error {
	return r.with(ctx, func(ctx context.Context, c *client.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		removed, failed := c.Subscribe(ctx, `topic=="/images/delete",namespace=="`+namespace+`"`)
		tell()
		for {
			select {
			case <-removed:
				tell()
			case err := <-failed:
				return err
			}
		}
	})
}
