package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// manyEnds is the number of exits during a watch after which Watch gives up,
	// if the last run was short. A program that only waits for another one needs
	// fewer. Exits before the watch do not count: Docker's own counter covers the
	// whole life of the container.
	manyEnds   = 3
	watchPause = 500 * time.Millisecond
)

// Watch returns an error, with the last line of the log, once the container has
// exited for good or crashes repeatedly; nil when ctx ends. It reports any
// other exit as progress.
func (s Service) Watch(ctx context.Context) error {
	docker, err := s.Docker()
	if err != nil {
		return err
	}
	since := time.Now()
	var seen end
	for {
		last, ok := docker.lastEnd(ctx, s.Name, since)
		if ok && last.at != seen.at {
			last.times = seen.times + 1
			seen = last
			text := fmt.Sprintf("%s: %s", last, lastLine(s.Tail(ctx, 1)))
			if last.final(step.CheckLimit(ctx)) {
				return errors.New(text)
			}
			step.Report(ctx, text, 0, 0)
		}
		if pause(ctx, watchPause) != nil {
			return nil
		}
	}
}

// end describes how a container exited that does not run now.
type end struct {
	container string
	code      int
	at        string
	ran       time.Duration
	times     int  // how often it exited during the watch
	restarted bool // the engine will restart it
}

func (e end) String() string {
	if e.times > 1 {
		return fmt.Sprintf("container %s ended %d times, the last time with exit code %d after %s", e.container, e.times, e.code, e.ran.Round(watchPause/5))
	}
	return fmt.Sprintf("container %s ended with exit code %d after %s", e.container, e.code, e.ran.Round(watchPause/5))
}

// final reports whether the container will not recover by itself. A program
// that ran for longer than soon counts as started.
func (e end) final(soon time.Duration) bool {
	return !e.restarted || e.times >= manyEnds && e.ran < soon
}

// lastEnd returns false for a container that runs, or that exited before since
// and will be restarted.
func (d *Engine) lastEnd(ctx context.Context, name string, since time.Time) (end, bool) {
	now, err := d.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil {
		return end{}, false // the wait itself reports it
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
		ran: finished.Sub(started), restarted: c.State.Restarting,
	}, err == nil && ferr == nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
