package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watch returns an error, with the last line of the log, once the container has
// exited for good or crashes repeatedly; nil when ctx ends.
func (s ManagedContainer) Watch(ctx context.Context) error {
	docker := s.Docker()
	return step.WatchEnds(ctx, func(ctx context.Context, since time.Time) (step.End, bool) {
		last, ended := lastEnd(ctx, docker.Client, s.Name, since)
		last.LastLine = s.reason
		return last, ended
	})
}

// reason returns the last line that a container printed before it ended. Docker may restart the
// container before the log is read. Then reason waits for the end of the new run.
func (s ManagedContainer) reason(ctx context.Context) (line string) {
	docker := s.Docker()
	ctx = step.WithLimit(context.WithoutCancel(ctx), step.CheckLimit(ctx))
	_ = step.Until(ctx, func(ctx context.Context) error {
		before, _ := lastEnd(ctx, docker.Client, s.Name, time.Time{})
		line = lastLine(s.Tail(ctx, 1))
		if after, ended := lastEnd(ctx, docker.Client, s.Name, time.Time{}); !ended || after.ID != before.ID {
			return errors.New("container " + s.Name + " runs again")
		}
		return nil
	}, nil)
	return line
}

// lastEnd returns false for a container that runs, or that exited before since and will be
// restarted: Docker's own counter covers the whole life of the container.
func lastEnd(ctx context.Context, api *client.Client, name string, since time.Time) (step.End, bool) {
	now, err := api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil {
		return step.End{}, false // the wait itself reports it
	}
	last, ended := endOf(now.Container)
	at, err := time.Parse(time.RFC3339Nano, last.ID)
	return last, ended && err == nil && (!last.Restarted || at.After(since))
}

// signalled is below the exit codes of programs that a signal has ended.
const signalled = 128

func endOf(c container.InspectResponse) (step.End, bool) {
	if c.State == nil || c.State.Status == container.StateCreated || c.State.Running && !c.State.Restarting {
		return step.End{}, false
	}
	started, err := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	finished, ferr := time.Parse(time.RFC3339Nano, c.State.FinishedAt)
	return step.End{
		What: "container " + strings.TrimPrefix(c.Name, "/"), ID: c.State.FinishedAt, Code: c.State.ExitCode,
		Ran: finished.Sub(started), Restarted: c.State.Restarting,
	}, err == nil && ferr == nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

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
		Add("event", string(events.ActionStart), string(events.ActionDie), string(events.ActionDestroy),
			string(events.ActionPause),
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
