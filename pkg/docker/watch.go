package docker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// manyRestarts in a row, each soon after the last, are more than a program
	// needs that waits for another one.
	manyRestarts = 3
	watchPause   = 500 * time.Millisecond
)

// Watch returns an error as soon as the container has ended for good, or ends
// again and again, with the last line that it wrote; nil when ctx ends. An end
// that may pass is reported.
func (s Service) Watch(ctx context.Context) error {
	docker, err := s.Docker()
	if err != nil {
		return err
	}
	since, told := time.Now(), ""
	for {
		last, ok := docker.lastEnd(ctx, s.Name, since)
		if ok && last.final(step.CheckLimit(ctx)) {
			return fmt.Errorf("%s: %s", last, lastLine(s.Tail(ctx, 1)))
		}
		if ok && told != last.at {
			told = last.at
			step.Report(ctx, fmt.Sprintf("%s: %s", last, lastLine(s.Tail(ctx, 1))), 0, 0)
		}
		if pause(ctx, watchPause) != nil {
			return nil
		}
	}
}

// end is how a container ended that does not run now.
type end struct {
	container string
	code      int
	at        string
	ran       time.Duration
	restarts  int
	restarted bool // it will be started again
}

func (e end) String() string {
	if e.restarts > 1 {
		return fmt.Sprintf("container %s ended %d times, the last time with exit code %d after %s", e.container, e.restarts, e.code, e.ran.Round(watchPause/5))
	}
	return fmt.Sprintf("container %s ended with exit code %d after %s", e.container, e.code, e.ran.Round(watchPause/5))
}

// final reports whether nothing is to be expected of the container any more. A
// program that ran for longer than soon has started.
func (e end) final(soon time.Duration) bool {
	return !e.restarted || e.restarts >= manyRestarts && e.ran < soon
}

// lastEnd is false of a container that runs, or that ended before since and will
// be started again.
func (d *Engine) lastEnd(ctx context.Context, name string, since time.Time) (end, bool) {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil {
		return end{}, false // the wait itself tells that
	}
	last, ended := endOf(now.Container)
	at, err := time.Parse(time.RFC3339Nano, last.at)
	return last, ended && err == nil && (!last.restarted || at.After(since))
}

func endOf(c container.InspectResponse) (end, bool) {
	if c.State == nil || c.State.Status == container.StateCreated || c.State.Running && !c.State.Restarting {
		return end{}, false
	}
	started, err := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	finished, ferr := time.Parse(time.RFC3339Nano, c.State.FinishedAt)
	return end{
		container: strings.TrimPrefix(c.Name, "/"), code: c.State.ExitCode, at: c.State.FinishedAt,
		ran: finished.Sub(started), restarts: c.RestartCount, restarted: c.State.Restarting,
	}, err == nil && ferr == nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
