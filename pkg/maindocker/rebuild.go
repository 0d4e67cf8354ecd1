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
	// rebuildFile exists while rebuild has set live-restore in daemon.json. It
	// contains the user's value: "false", or nothing.
	rebuildFile = host.StateDir + "/docker-rebuild"
	liveRestore = "live-restore"
	pidFile     = "/run/docker.pid"
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
// A Docker that refuses the setting, for example in a swarm, is restarted
// with all its containers.
func (b Bridge) rebuild(ctx context.Context) error {
	docker, err := b.Docker()
	if err != nil {
		return err
	}
	// The user may have edited the file meanwhile.
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

// beginRebuild returns once Docker has read the setting, or after some
// seconds. It changes nothing if the user has set live-restore.
func (b Bridge) beginRebuild(ctx context.Context) error {
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil || now[liveRestore] == true && !b.Files.Exists(rebuildFile) {
		return err
	}
	var before []byte
	if now[liveRestore] == false {
		before = []byte("false")
	}
	if !b.Files.Exists(rebuildFile) { // otherwise an earlier run was interrupted
		if err := b.Files.Write(rebuildFile, before, 0o600); err != nil {
			return err
		}
	}
	return b.setLiveRestore(ctx, true)
}

// endRebuild removes the setting from daemon.json and from the running
// Docker, in which a missing key would not change it.
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
		return err // Docker reads the file when it starts
	}
	if err := b.Files.HangUp(pidFile); err != nil {
		return err
	}
	const patience = 10 * time.Second // a Docker that refuses the setting only logs that
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

// Restarting reports whether a restart of Docker by kube-bootstrap is in
// progress or was interrupted.
func Restarting(files host.Files) bool {
	return files.Exists(pendingRecord.Path) || files.Exists(rebuildFile)
}
