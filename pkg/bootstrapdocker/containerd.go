package bootstrapdocker

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	containerdScript = "/etc/init.d/containerd"
	containerdPid    = "/run/docker-bootstrap-containerd.pid"
)

// Containerd is the step that starts the containerd that both Docker daemons
// share. If the distribution has no init script for it, the step installs
// one, because dockerd would otherwise start a private containerd without
// CRI.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/command/daemon.go#L893-L906
//
// It runs before anything is loaded into containerd, so that turndown undoes
// the loads before it stops containerd.
func (d Dockerd) Containerd() step.Step {
	return step.Step{
		ID: "bootstrap-containerd", Name: "start containerd", Check: d.checkContainerd, Apply: d.startContainerd,
		Undo: d.dropContainerd,
	}
}

func (d Dockerd) checkContainerd(ctx context.Context) (step.Diff, error) {
	scripts, err := d.containerdScripts()
	if err != nil {
		return nil, err
	}
	diff, err := d.Files.Missing(scripts)
	if err != nil || len(diff) > 0 {
		return diff, err
	}
	active, err := d.Units.Active(ctx, "containerd")
	if err == nil && !active {
		diff = step.Diff{"start containerd"}
	}
	return diff, err
}

func (d Dockerd) startContainerd(ctx context.Context) error {
	scripts, err := d.containerdScripts()
	if err != nil {
		return err
	}
	if err := errors.Join(d.noteStore(), d.Files.Put(scripts)); err != nil {
		return err
	}
	return step.Wrap(d.Units.Start(ctx, "containerd"), "start containerd")
}

// containerdScripts returns the init script, unless the distribution has one.
func (d Dockerd) containerdScripts() ([]host.File, error) {
	if d.Units.Init() == "systemd" || d.Files.Exists(containerdScript) && !d.ours(containerdScript) {
		return nil, nil
	}
	v, err := d.values()
	if err != nil {
		return nil, err
	}
	return []host.File{initsystem.ServiceFile(d.Units, "containerd", unitFiles, v)}, nil
}

// dropContainerd removes the init script that kube-bootstrap installed, while
// the main Docker, which uses this containerd too, is stopped.
func (d Dockerd) dropContainerd(ctx context.Context) error {
	if d.Units.Init() == "systemd" || !d.ours(containerdScript) {
		return d.Files.RemoveHalfWritten(containerdScript)
	}
	docker, err := d.Units.Active(ctx, "docker")
	if err != nil {
		return err
	}
	drop := func() error {
		if err := d.Units.Stop(ctx, "containerd"); err != nil {
			return err // it still uses its data
		}
		if err := d.dropStore(); err != nil {
			return err
		}
		return d.Files.Drop(containerdScript, containerdLog, containerdPid, containerdSocket, containerdSocket+".ttrpc")
	}
	if !docker {
		return drop()
	}
	return d.WhileMainStopped(ctx, drop)
}

// storeFile exists if containerd had no data before kube-bootstrap started
// it.
const storeFile = host.StateDir + "/containerd-store"

// storeDirs are the persistent and the temporary directory of containerd.
var storeDirs = []string{"/var/lib/containerd", "/run/containerd"}

// noteStore records that the containerd of kube-bootstrap's init script is
// the first one on this host.
func (d Dockerd) noteStore() error {
	if d.Units.Init() == "systemd" || d.Files.Exists(containerdScript) || d.Files.Exists(storeFile) {
		return nil
	}
	if entries, err := d.Files.Entries(storeDirs[0]); err != nil || len(entries) > 0 {
		return nil
	}
	return d.Files.Write(storeFile, nil, 0o600)
}

// dropStore removes the data of that containerd, including images of pods.
func (d Dockerd) dropStore() error {
	if d.KeepImages || !d.Files.Exists(storeFile) {
		return nil
	}
	for _, dir := range storeDirs {
		if err := filesystem.UnmountBelow(d.Files.Path(dir)); err != nil {
			return err
		}
		if err := d.Files.RemoveAll(dir); err != nil {
			return err
		}
	}
	return d.Files.Remove(storeFile)
}
