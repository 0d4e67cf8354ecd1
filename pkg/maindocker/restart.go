package maindocker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/restart"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// pendingRecord lists what ran before Docker was stopped. It exists until
// everything runs again, and after an interrupted restart.
var pendingRecord = host.Record[pending]{Path: host.StateDir + "/docker-restart.json", Valid: pending.valid}

type pending struct {
	Containers []restart.RunningContainer `json:"containers"` // oldest first
	Socket     bool                       `json:"socket"`     // docker.socket was active
	Back       bool                       `json:"back"`       // Docker is being moved back, so Boot does nothing
}

func (p pending) valid() error {
	for _, c := range p.Containers {
		if _, err := hex.DecodeString(c.ID); err != nil || c.ID == "" {
			return fmt.Errorf("%q is not the ID of a container", c.ID)
		}
	}
	return nil
}

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
		if !Interrupted(d.Files) {
			return nil, nil
		}
		return step.DiffOf(d.Engine().Answers(ctx), "start Docker, which a run that was cut short had stopped")
	}
	return step.Step{
		ID: "resume-docker", Name: "start Docker again",
		Check: check,
		Apply: func(ctx context.Context) error {
			if diff, err := check(ctx); err != nil || len(diff) == 0 {
				return err
			}
			return d.start(ctx, readPending(d.Files))
		},
	}
}

// Interrupted reports whether a run has stopped Docker, or was about to, and has not brought
// back everything since. It shows that the run stopped Docker, and not the administrator.
func Interrupted(files host.Files) bool { return files.Exists(pendingRecord.Path) }

// Finish completes the restart of Docker by a run that was killed. It does nothing if there is none.
func (d Daemon) Finish(ctx context.Context) error {
	p := readPending(d.Files)
	switch {
	case !Interrupted(d.Files):
		return nil
	case p.Back:
		return d.moveBack(ctx)
	case d.Engine().Answers(ctx) == nil:
		return d.startContainers(ctx, p)
	}
	return d.bringBack(ctx, p)
}

// WhileStopped calls change while Docker is stopped, and then starts Docker and
// every container that ran, also containers without a restart policy. A container that does
// not start is reported by step.Leave, and is not an error.
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
	err = d.bringBack(context.WithoutCancel(ctx), p)
	if _, failed := errors.AsType[startError](err); failed && !stopped {
		err = errors.Unwrap(err) // the settings are those from before
	}
	return errors.Join(changed, err)
}

// startError is the error that Docker did not start with changed settings.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// remember records what runs now, in addition to what an interrupted restart
// recorded. It also returns the containers that run now.
func (d Daemon) remember(ctx context.Context, back bool) (p pending, running []restart.RunningContainer, err error) {
	p = readPending(d.Files)
	p.Back = back
	engine := d.Engine()
	if engine.Answers(ctx) != nil {
		return p, nil, pendingRecord.Write(d.Files, p)
	}
	if running, err = restart.Running(ctx, engine); err != nil {
		return p, nil, err
	}
	for _, c := range running {
		known := func(other restart.RunningContainer) bool { return other.ID == c.ID }
		if !slices.ContainsFunc(p.Containers, known) {
			p.Containers = append(p.Containers, c)
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
func (d Daemon) stopAll(ctx context.Context, running []restart.RunningContainer) error {
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
func (d Daemon) stopContainers(ctx context.Context, running []restart.RunningContainer) error {
	if len(running) == 0 {
		return nil
	}
	engine := d.Engine()
	info, err := engine.Facts(ctx)
	if err != nil || !info.LiveRestoreEnabled && d.Units.Init() == "systemd" {
		return err
	}
	return restart.Stop(ctx, engine, running)
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
	engine := d.Engine()
	return step.Until(ctx, func(ctx context.Context) error {
		if engine.Answers(ctx) == nil {
			return errors.New("Docker still answers although its service was stopped; start it by its service, not " +
				"by hand")
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

// bringBack starts Docker and what ran, each container within a limit of its own. It
// reports a container that does not start; the next run does not try again.
func (d Daemon) bringBack(ctx context.Context, p pending) error {
	step.Report(ctx, "starting Docker", 0, 0)
	starting, cancel := step.Limited(ctx)
	defer cancel()
	if err := d.start(starting, p); err != nil {
		return startError{err}
	}
	return d.startContainers(ctx, p)
}

func (d Daemon) startContainers(ctx context.Context, p pending) error {
	engine := d.Engine()
	step.Report(ctx, fmt.Sprintf("starting %d containers", len(p.Containers)), 0, 0)
	failed := restart.Start(ctx, engine, p.Containers)
	// Docker has ended meanwhile: the next run tries again
	if err := engine.Answers(ctx); len(failed) > 0 && err != nil {
		return errors.Join(append(failed, err)...)
	}
	for _, err := range failed {
		step.Leave(ctx, err.Error())
	}
	return d.Files.Remove(pendingRecord.Path)
}
