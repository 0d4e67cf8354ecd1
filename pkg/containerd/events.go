package containerd

import (
	"context"

	"github.com/containerd/containerd/v2/client"
)

// Follow calls up when containerd answers, and changed whenever an image for
// pods is removed, until ctx or containerd ends.
func (r Runtime) Follow(ctx context.Context, up, changed func()) error {
	return r.with(ctx, func(ctx context.Context, c *client.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events, failed := c.Subscribe(ctx, `namespace=="`+namespace+`",topic=="/images/delete"`)
		up()
		for {
			select {
			case <-events:
				changed()
			case err := <-failed:
				return err
			}
		}
	})
}
