package docker

import (
	"context"
	"errors"
	"time"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ManagedContainer is a container of kube-bootstrap that a step keeps running.
type ManagedContainer struct {
	Docker    func() *Engine // the engine that runs it
	Name      string
	Container func() (Container, error) // the required container of that name
}

// Diff lists what Run would do, as [Engine.Running] does.
func (s ManagedContainer) Diff(ctx context.Context) ([]string, error) {
	c, err := s.Container()
	if err != nil {
		return nil, err
	}
	return s.Docker().Running(ctx, c)
}

// Run makes the container run as described, as [Engine.Run] does.
func (s ManagedContainer) Run(ctx context.Context) error {
	c, err := s.Container()
	if err != nil {
		return err
	}
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return s.Docker().Run(ctx, c)
}

// Restart stops the container if it runs, and starts it. When the previous run ends, the
// engine may unmount files of the new run. That start fails, and the next start succeeds.
// ContainerRestart has the same defect.
func (s ManagedContainer) Restart(ctx context.Context) error {
	return s.RestartAround(ctx, func() error { return nil })
}

// RestartAround is Restart that calls stopped while the container does not run.
func (s ManagedContainer) RestartAround(ctx context.Context, stopped func() error) error {
	docker := s.Docker()
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	if _, err := docker.ContainerStop(ctx, s.Name, client.ContainerStopOptions{}); err != nil {
		return step.Wrap(err, "stop container %s", s.Name)
	}
	err := stopped() // a container that has been stopped does not start by itself
	return errors.Join(err, step.Until(ctx, func(ctx context.Context) error {
		_, err := docker.ContainerStart(ctx, s.Name, client.ContainerStartOptions{})
		return step.Wrap(err, "start container %s", s.Name)
	}, nil))
}

// Remove stops and removes the container, as [Engine.Remove] does.
func (s ManagedContainer) Remove(ctx context.Context) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return s.Docker().Remove(ctx, s.Name)
}

// StartedAt returns when the container was started last, as [Engine.StartedAt] does.
func (s ManagedContainer) StartedAt(ctx context.Context) (at time.Time, ok bool, err error) {
	return s.Docker().StartedAt(ctx, s.Name)
}

// Tail returns the container's last lines, for an error. The context may have ended.
func (s ManagedContainer) Tail(ctx context.Context, lines int) string {
	ctx, cancel := step.Checking(context.WithoutCancel(ctx))
	defer cancel()
	return s.Docker().Tail(ctx, s.Name, lines)
}

// LastRun returns what the container wrote since it was started last; failed is
// false while it runs, and if somebody has stopped it.
func (s ManagedContainer) LastRun(ctx context.Context) (log string, failed bool, err error) {
	docker := s.Docker()
	ctx, cancel := step.Checking(context.WithoutCancel(ctx))
	defer cancel()
	now, err := docker.ContainerInspect(ctx, s.Name, client.ContainerInspectOptions{})
	if err != nil {
		return "", false, Gone(err)
	}
	if end, ended := endOf(now.Container); !ended || end.Code == 0 || end.Code > signalled {
		return "", false, nil
	}
	log, _ = docker.Logs(ctx, s.Name, client.ContainerLogsOptions{Since: now.Container.State.StartedAt})
	return log, true, nil
}

// Log returns what the container wrote since it was started last.
func (s ManagedContainer) Log(ctx context.Context) (string, error) {
	docker := s.Docker()
	at, _, err := docker.StartedAt(ctx, s.Name)
	if err != nil {
		return "", err
	}
	return docker.Logs(ctx, s.Name, client.ContainerLogsOptions{Since: at.Format(time.RFC3339Nano)})
}
