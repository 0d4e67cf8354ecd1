// Package bootstrapdocker runs the second Docker daemon of a host, for etcd
// and flanneld, on which the network of the main Docker depends.
//
//	containerd ──namespace docker-bootstrap──▶ dockerd ──▶ /run/docker-bootstrap.sock
//
// It has no bridge and no firewall rules. It shares only containerd with the
// main Docker, in a separate namespace.
package bootstrapdocker

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Socket is the socket of the bootstrap Docker.
const Socket = "/run/docker-bootstrap.sock"

const (
	unit             = "docker-bootstrap"
	dataRoot         = "/var/lib/docker-bootstrap"
	execRoot         = "/run/docker-bootstrap"
	pidFile          = "/run/docker-bootstrap.pid"
	superviseFile    = "/run/docker-bootstrap.supervise.pid"
	logFile          = "/var/log/docker-bootstrap.log"
	configFile       = host.StateDir + "/docker-bootstrap.json"
	containerdSocket = "/run/containerd/containerd.sock"
	containerdLog    = "/var/log/docker-bootstrap-containerd.log"
	namespace        = "docker-bootstrap"
	pluginsNamespace = "docker-bootstrap-plugins"
	cgroup           = "docker-bootstrap"
)

// Dockerd is the bootstrap Docker of this host.
type Dockerd struct {
	Files      host.Files
	Units      initsystem.Units
	KeepImages bool // Undo keeps the images, also the images of a containerd that kube-bootstrap installed
	// WhileMainStopped calls change while the main Docker is stopped, and starts
	// the main Docker and its containers again.
	WhileMainStopped func(ctx context.Context, change func() error) error
}

// StartID identifies Daemon.Start.
const StartID step.ID = "bootstrap-docker"

// Start is the step that installs and enables the daemon.
func (d Dockerd) Start() step.Step {
	return step.Step{ID: StartID, Name: "start the bootstrap Docker", Check: d.check, Apply: d.apply, Undo: d.undo}
}

func (d Dockerd) service() initsystem.Service {
	return initsystem.Service{Files: d.Files, Units: d.Units, Name: unit}
}

func (d Dockerd) check(ctx context.Context) (step.Diff, error) {
	tree, err := d.tree()
	if err != nil {
		return nil, err
	}
	diff, err := d.service().Diff(tree)
	if err != nil {
		return nil, err
	}
	active, err := d.Units.Active(ctx, unit)
	if err != nil {
		return nil, err
	}
	if !active {
		return append(diff, "start "+unit), nil
	}
	start, err := step.DiffOf(answers(ctx), "start "+unit)
	return append(diff, start...), err
}

func (d Dockerd) apply(ctx context.Context) error {
	tree, err := d.tree()
	if err != nil {
		return err
	}
	if err := d.service().Start(ctx, tree, false); err != nil {
		return err
	}
	return step.Until(ctx, answers, func() string { return d.service().LogTail(ctx, logFile) })
}

func answers(ctx context.Context) error {
	docker := docker.Open(Socket)
	defer docker.Close()
	return docker.Answers(ctx)
}

// undo removes the daemon with its data: containers before their directories,
// and the unit last.
func (d Dockerd) undo(ctx context.Context) error {
	if err := d.stop(ctx); err != nil {
		return err
	}
	err := errors.Join(
		emptyNamespaces(ctx),
		filesystem.UnmountBelow(d.Files.Path(dataRoot)),
		filesystem.UnmountBelow(d.Files.Path(execRoot)),
	)
	if err != nil {
		return err
	}
	return errors.Join(
		d.dropData(),
		d.Files.RemoveAll(execRoot),
		d.Files.Drop(Socket, pidFile, superviseFile, logFile, configFile, d.service().Path()),
		d.Files.Drop(namespaceDirs()...),
		host.RemoveDeadSockets(d.Files, host.ShimSockets),
		process.RemoveCgroup(cgroup),
	)
}

func (d Dockerd) stop(ctx context.Context) error {
	if !d.Files.Exists(d.service().Path()) {
		return nil
	}
	if err := d.Units.Stop(ctx, unit); err != nil {
		return err
	}
	return step.Wrap(d.Units.Disable(ctx, unit), "disable %s", unit)
}

// dropData removes the daemon's data. The containers are already removed, so
// KeepImages keeps only images.
func (d Dockerd) dropData() error {
	if d.KeepImages {
		return nil
	}
	return d.Files.RemoveAll(dataRoot)
}

// namespaceDirs returns the empty directories that containerd keeps for a
// deleted namespace.
func namespaceDirs() (dirs []string) {
	for _, root := range storeDirs {
		tasks := root + "/io.containerd.runtime.v2.task/"
		dirs = append(dirs, tasks+namespace, tasks+pluginsNamespace)
	}
	return dirs
}
