package docker

import (
	"context"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// Follow calls up once the engine at a socket of this host answers. It calls
// changed when a container of kube-bootstrap starts, exits or is removed, and when
// an image is removed. It returns when ctx is done or the engine stops.
func Follow(ctx context.Context, socket string, up, changed func()) error {
	engine := Open(socket)
	defer engine.Close()
	if err := engine.Answers(ctx); err != nil {
		return err
	}
	return stream(ctx, engine.Client, up, changed)
}

func stream(ctx context.Context, api *client.Client, up, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := api.Events(ctx, client.EventsListOptions{Filters: make(client.Filters).
		Add("type", string(events.ContainerEventType), string(events.ImageEventType)).
		Add("event", string(events.ActionStart), string(events.ActionDie), string(events.ActionDestroy), string(events.ActionPause),
			string(events.ActionRename), string(events.ActionDelete), string(events.ActionUnTag)),
	})
	up()
	for {
		select {
		case event := <-sent.Messages:
			if event.Type == events.ImageEventType || event.Actor.Attributes[OurLabel] != "" {
				changed()
			}
		case err := <-sent.Err:
			return err
		}
	}
}
