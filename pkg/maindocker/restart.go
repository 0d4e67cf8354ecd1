package maindocker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// pendingRecord lists what ran before Docker was stopped. It exists until
// everything runs again, and after an interrupted restart.
var pendingRecord = host.Record[pending]{Path: host.StateDir + "/docker-restart.json", Valid: pending.valid}

type pending struct {
	Containers []string `json:"containers"` // ids, oldest first
	Socket     bool     `json:"socket"`     // docker.socket was active
	Back       bool     `json:"back"`       // Docker is being moved back, so Boot does nothing
}

func (p pending) valid() error {
	for _, id := range p.Containers {
		if _, err := hex.DecodeString(id); err != nil || id == "" {
			return fmt.Errorf("%q is not the ID of a container", id)
		}
	}
	return nil
}

func isPending(files host.Files) bool { return files.Exists(pendingRecord.Path) }

// readPending returns the record. A damaged record means that Docker must be
// started; its restart policies then start containers.
func readPending(files host.Files) pending {
	p, _ := pendingRecord.Read(files)
	return p
}

// Resume starts a Docker that an interrupted run has stopped, because steps
// before Move need it. Move does the rest.
func (d Daemon) Resume() step.Step {
	check := func(ctx context.Context) (step.Diff, error) {
		if !isPending(d.Files) {
			return nil, nil
		}
		return step.DiffOf(d.Engine().Answers(ctx), "start Docker, which a run that was cut short had stopped")
	}
	return step.Step{
		Name:  "start Docker again",
		Check: check,
		Apply: func(ctx context.Context) error {
			if diff, err := check(ctx); err != nil || len(diff) == 0 {
				return err
			}
			return d.start(ctx, readPending(d.Files))
		},
	}
}

// WhileStopped calls change while Docker is stopped, and then starts Docker and
// every container that ran, also containers without a restart policy.
func (d Daemon) WhileStopped(ctx context.Context, change func() error) error {
	return d.whileStopped(ctx, readPending(d.Files).Back, nil, change)
}

// whileStopped stops Docker, calls change, and starts Docker and the
// containers that ran. If the stop, change or the start of Docker fails, it
// starts as much as possible. It stops nothing if Docker would not start with data, the
// daemon.json that change writes; nil stands for the current file.
func (d Daemon) whileStopped(ctx context.Context, back bool, data []byte, change func() error) error {
	if err := validateNext(ctx, d.Files, data); err != nil {
		return err
	}
	p, running, err := d.remember(ctx, back)
	if err != nil {
		return fmt.Errorf("record what runs: %w", err)
	}
	step.Report(ctx, "stopping Docker", 0, 0)
	changed := d.stopAll(ctx, running)
	stopped := changed == nil
	if stopped {
		changed = change()
	}
	// Without Docker the user's containers are down, so start it also after a
	// cancellation.
	startCtx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	step.Report(ctx, "starting Docker", 0, 0)
	err = d.start(startCtx, p)
	if err == nil {
		err = d.bringBack(startCtx, p)
	} else if stopped {
		err = startError{err}
	}
	return errors.Join(changed, err)
}

// startError is the error that Docker did not start with changed settings.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// remember records what runs now, in addition to what an interrupted restart
// recorded. It also returns the containers that run now.
func (d Daemon) remember(ctx context.Context, back bool) (p pending, running []string, err error) {
	p = readPending(d.Files)
	p.Back = back
	docker := d.Engine()
	if docker.Answers(ctx) != nil {
		return p, nil, pendingRecord.Write(d.Files, p)
	}
	if running, err = docker.RunningIDs(ctx); err != nil {
		return p, nil, err
	}
	for _, id := range running {
		if !slices.Contains(p.Containers, id) {
			p.Containers = append(p.Containers, id)
		}
	}
	active, err := d.socketActive(ctx)
	if err != nil {
		return p, nil, err
	}
	p.Socket = p.Socket || active
	return p, running, pendingRecord.Write(d.Files, p)
}

// stopAll stops Docker and the containers that run. It completes the stop also
// after a cancellation, so that the start that follows begins with a stopped
// Docker. It then returns the cause.
func (d Daemon) stopAll(ctx context.Context, running []string) error {
	stopCtx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	if err := d.stopContainers(stopCtx, running); err != nil {
		return err
	}
	if err := d.stop(stopCtx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// stopContainers stops containers that would outlive Docker. With
// live-restore they would keep the old subnet in use, so that Docker would
// not move docker0. An init script kills Docker if it does not stop its
// containers within seconds.
func (d Daemon) stopContainers(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	docker := d.Engine()
	info, err := docker.Facts(ctx)
	if err != nil || !info.LiveRestoreEnabled && d.Units.Init() == "systemd" {
		return err
	}
	return docker.StopAll(ctx, ids)
}

// stop stops Docker and its socket unit, which would start Docker again at
// the first request.
func (d Daemon) stop(ctx context.Context) error {
	active, err := d.socketActive(ctx)
	if err != nil {
		return err
	}
	if active {
		if err := d.Units.Stop(ctx, "docker.socket"); err != nil {
			return err
		}
	}
	if err := d.Units.Stop(ctx, "docker"); err != nil || d.Units.Init() == "systemd" {
		return err
	}
	// The init script may not have stopped the Docker that runs.
	docker := d.Engine()
	return step.Until(ctx, func(ctx context.Context) error {
		if docker.Answers(ctx) == nil {
			return errors.New("Docker still answers although its service was stopped; start it by its service, not by hand")
		}
		return nil
	}, nil)
}

// socketActive reports whether systemd listens for Docker.
func (d Daemon) socketActive(ctx context.Context) (bool, error) {
	if d.Units.Init() != "systemd" {
		return false, nil
	}
	return d.Units.Active(ctx, "docker.socket")
}

func (d Daemon) start(ctx context.Context, p pending) error {
	// Restart resets the start limit, and Start does not.
	if p.Socket {
		if err := d.Units.Restart(ctx, "docker.socket"); err != nil {
			return err
		}
	}
	if err := d.Units.Restart(ctx, "docker"); err != nil {
		return err
	}
	return step.Until(ctx, d.Engine().Answers, nil)
}

// bringBack starts what ran. If a container cannot start, bringBack reports
// that in this run only; the next run does not try again.
func (d Daemon) bringBack(ctx context.Context, p pending) error {
	started := d.Engine().StartAll(ctx, p.Containers)
	if ctx.Err() != nil {
		return started
	}
	if started != nil && p.Back {
		// Docker has its original settings again, so a container that fails now is
		// not turndown's problem.
		step.Leave(ctx, "a container that ran before does not run now: "+started.Error())
		started = nil
	}
	return errors.Join(started, d.Files.Remove(pendingRecord.Path))
}
