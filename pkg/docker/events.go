package docker

import (
	"context"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// Follow calls tell whenever a container of ours starts or ends or is removed,
// and whenever an image is removed, until ctx or the engine ends.
func (d *Engine) Follow(ctx context.Context, tell func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := d.Events(ctx, client.EventsListOptions{Filters: make(client.Filters).
		Add("type", string(events.ContainerEventType), string(events.ImageEventType)).
		Add("event", string(events.ActionStart), string(events.ActionDie), string(events.ActionDestroy), string(events.ActionPause),
			string(events.ActionRename), string(events.ActionDelete), string(events.ActionUnTag)),
	})
	for {
		select {
		case event := <-stream.Messages:
			if event.Type == events.ImageEventType || event.Actor.Attributes[OurLabel] != "" {
				tell()
			}
		case err := <-stream.Err:
			return err
		}
	}
}
