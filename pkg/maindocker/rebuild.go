package maindocker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// rebuildFile exists while live-restore in daemon.json is ours. It holds
	// what the owner's file said of it: "false", or nothing.
	rebuildFile = host.StateDir + "/docker-rebuild"
	liveRestore = "live-restore"
	pidFile     = "/run/docker.pid"
	// networkSockets: each dockerd listens on one of its own, which it leaves
	// behind when it ends while containers run on.
	networkSockets = "/run/docker/libnetwork/*.sock"
)

// rebuild restarts Docker, which then makes its chains and the rules of each
// container again. Without firewalld nothing less makes it do so. Containers go
// on running meanwhile (live-restore): Docker takes this setting while it runs,
// so it is in force for this restart only.
//
//	set live-restore ─▶ SIGHUP ─▶ restart ─▶ unset ─▶ SIGHUP ─▶ remove the key
//
// A Docker that refuses, as one in a swarm does, is restarted with all that
// runs in it.
func (b Bridge) rebuild(ctx context.Context) error {
	docker, err := b.Docker()
	if err != nil {
		return err
	}
	// The owner may have begun to edit it.
	if data, err := b.Files.Read(daemonJSON); err == nil {
		if err := validate(ctx, data); err != nil {
			return err
		}
	}
	if err := b.beginRebuild(ctx); err != nil {
		return err
	}
	info, err := docker.Facts(ctx)
	if err != nil {
		return err
	}
	if !info.LiveRestoreEnabled {
		return errors.Join(b.endRebuild(ctx), b.Restart(ctx))
	}
	step.Report(ctx, "restarting Docker, containers go on", 0, 0)
	restart := errors.Join(b.Units.Restart(ctx, "docker"), step.Until(ctx, docker.Answers, nil))
	return errors.Join(restart, b.Files.RemoveDeadSockets(networkSockets), b.endRebuild(context.WithoutCancel(ctx)))
}

// beginRebuild returns once Docker has taken the setting, or has had time to.
// An owner's own setting is enough.
func (b Bridge) beginRebuild(ctx context.Context) error {
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil || now[liveRestore] == true && !b.Files.Exists(rebuildFile) {
		return err
	}
	var before []byte
	if now[liveRestore] == false {
		before = []byte("false")
	}
	if !b.Files.Exists(rebuildFile) { // else an earlier run was cut short
		if err := b.Files.Write(rebuildFile, before, 0o600); err != nil {
			return err
		}
	}
	return b.setLiveRestore(ctx, true)
}

// endRebuild removes the setting, from the running Docker too: one that is
// missing in its file would stay in force.
func (b Bridge) endRebuild(ctx context.Context) error {
	before, err := b.Files.Read(rebuildFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.setLiveRestore(ctx, false); err != nil {
		return err
	}
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil {
		return err
	}
	if string(before) != "false" {
		delete(now, liveRestore)
	}
	if err := b.replaceSettings(now); err != nil {
		return err
	}
	return b.Files.Remove(rebuildFile)
}

func (b Bridge) setLiveRestore(ctx context.Context, on bool) error {
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil {
		return err
	}
	now[liveRestore] = on
	if err := b.replaceSettings(now); err != nil {
		return err
	}
	docker, err := b.Docker()
	if err != nil || docker.Answers(ctx) != nil {
		return err // it reads the file when it starts
	}
	if err := b.Files.HangUp(pidFile); err != nil {
		return err
	}
	const patience = 10 * time.Second // one that refuses the setting says so in its log only
	_ = step.Until(step.WithLimit(ctx, patience), func(ctx context.Context) error {
		info, err := docker.Facts(ctx)
		if err == nil && info.LiveRestoreEnabled != on {
			err = fmt.Errorf("Docker has not read %s yet", daemonJSON)
		}
		return err
	}, nil)
	return ctx.Err()
}

func (b Bridge) replaceSettings(s settings) error {
	data, err := encode(s)
	if err != nil {
		return err
	}
	return b.writeSettings(data)
}

// Restarting reports whether a run has begun to restart Docker and has not
// ended that, be it under way or cut short.
func Restarting(files host.Files) bool {
	return files.Exists(pendingRecord.Path) || files.Exists(rebuildFile)
}
