package docker

import (
	"context"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Watch returns an error, with the last line of the log, once the container has
// exited for good or crashes repeatedly; nil when ctx ends.
func (s Service) Watch(ctx context.Context) error {
	docker := s.Docker()
	return step.WatchEnds(ctx, func(ctx context.Context, since time.Time) (step.End, bool) {
		last, ended := lastEnd(ctx, docker.Client, s.Name, since)
		last.LastLine = func(ctx context.Context) string { return lastLine(s.Tail(ctx, 1)) }
		return last, ended
	})
}

// lastEnd returns false for a container that runs, or that exited before since
// and will be restarted: Docker's own counter covers the whole life of the
// container.
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
