package maindocker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/moby/moby/api/types/swarm"
	"github.com/moby/moby/api/types/system"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// rebuildFile exists while rebuild has set live-restore in daemon.json. It
	// contains the user's value: "false", or nothing.
	rebuildFile = host.StateDir + "/docker-rebuild"
	liveRestore = "live-restore"
	// networkSockets matches a socket that each dockerd creates, and leaves
	// behind if containers keep running when it ends.
	networkSockets = "/run/docker/libnetwork/*.sock"
)

// rebuild restarts Docker, which then creates its chains and the rules of
// each container again. Without firewalld there is no other way. Containers
// keep running (live-restore). Docker reads this setting on SIGHUP, so it is
// set for this restart only:
//
//	set live-restore ─▶ SIGHUP ─▶ restart ─▶ unset ─▶ SIGHUP ─▶ remove the key
//
// In a swarm, Docker accepts the setting but does not start with it. In a swarm, and if Docker
// refuses the setting, Docker is restarted with all its containers.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/config/config_linux.go#L128-L132
func (d Daemon) rebuild(ctx context.Context) error {
	docker := d.Engine()
	// The user may have edited the file meanwhile.
	if data, err := d.Files.Read(daemonJSON); err == nil {
		if err := validate(ctx, data); err != nil {
			return err
		}
	}
	info, err := docker.Facts(ctx)
	if err != nil {
		return err
	}
	if !inSwarm(info) {
		if err := d.beginRebuild(ctx); err != nil {
			return err
		}
		if info, err = docker.Facts(ctx); err != nil {
			return err
		}
	}
	if inSwarm(info) || !info.LiveRestoreEnabled {
		return errors.Join(d.endRebuild(ctx), d.WhileStopped(ctx, func() error { return nil }))
	}
	step.Report(ctx, "restarting Docker, containers go on", 0, 0)
	// A cancelled init script would leave Docker stopped.
	restartCtx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	restart := errors.Join(d.Units.Restart(restartCtx, "docker"), step.Until(restartCtx, docker.Answers, nil))
	return errors.Join(restart, host.RemoveDeadSockets(d.Files, networkSockets), d.endRebuild(ctx))
}

// inSwarm reports whether Docker refuses to start with live-restore. Docker 28.5 accepts the setting on
// SIGHUP nevertheless.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/reload.go#L273-L282
func inSwarm(info system.Info) bool {
	return info.Swarm.LocalNodeState != "" && info.Swarm.LocalNodeState != swarm.LocalNodeStateInactive
}

// beginRebuild returns once Docker has read the setting, or after some
// seconds. It changes nothing if the user has set live-restore.
func (d Daemon) beginRebuild(ctx context.Context) error {
	now, err := readSettings(d.Files)
	if err != nil {
		return err
	}
	if liveRestoreIsOn(ctx, d.Engine(), now) && !d.Files.Exists(rebuildFile) {
		return nil
	}
	var before []byte
	if now[liveRestore] == false {
		before = []byte("false")
	}
	if !d.Files.Exists(rebuildFile) { // otherwise an earlier run was interrupted
		if err := d.Files.Write(rebuildFile, before, 0o600); err != nil {
			return err
		}
	}
	return d.setLiveRestore(ctx, true)
}

// liveRestoreIsOn also knows the flag of dockerd. Docker does not start if both the flag and the key are set.
func liveRestoreIsOn(ctx context.Context, engine *docker.Engine, now settings) bool {
	info, err := engine.Facts(ctx)
	return now[liveRestore] == true || err == nil && info.LiveRestoreEnabled
}

// endRebuild removes the setting from daemon.json and from the running
// Docker, in which a missing key would not change it. It also does so after a
// cancellation, within the limit.
func (d Daemon) endRebuild(ctx context.Context) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	before, err := d.Files.Read(rebuildFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.setLiveRestore(ctx, false); err != nil {
		return err
	}
	now, err := readSettings(d.Files)
	if err != nil {
		return err
	}
	if string(before) != "false" {
		delete(now, liveRestore)
	}
	if err := writeSettings(d.Files, encode(now)); err != nil {
		return err
	}
	return d.Files.Remove(rebuildFile)
}

func (d Daemon) setLiveRestore(ctx context.Context, on bool) error {
	now, err := readSettings(d.Files)
	if err != nil {
		return err
	}
	now[liveRestore] = on
	if err := writeSettings(d.Files, encode(now)); err != nil {
		return err
	}
	docker := d.Engine()
	asking, cancel := step.Checking(ctx)
	defer cancel()
	switch err := docker.Answers(asking); {
	case err != nil && asking.Err() != nil:
		return err // a Docker that hangs may have read the file before the change
	case err != nil:
		return nil // Docker reads the file when it starts
	}
	if err := process.HangUp(d.Files, pidFile(d.Files)); err != nil {
		return err
	}
	const limit = 10 * time.Second // a Docker that refuses the setting only logs that
	_ = step.Until(step.WithLimit(ctx, limit), func(ctx context.Context) error {
		info, err := docker.Facts(ctx)
		if err == nil && info.LiveRestoreEnabled != on {
			err = fmt.Errorf("Docker has not read %s yet", daemonJSON)
		}
		return err
	}, nil)
	return ctx.Err()
}

// Restarting reports whether a restart of Docker by kube-bootstrap is in
// progress or was interrupted.
func Restarting(files host.Files) bool {
	return Interrupted(files) || files.Exists(rebuildFile)
}
