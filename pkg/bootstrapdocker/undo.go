package bootstrapdocker

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
)

// undo removes the daemon with its data: containers before their directories,
// and the unit last.
func (d Daemon) undo(ctx context.Context) error {
	if err := d.stop(ctx); err != nil {
		return err
	}
	errs := []error{
		emptyNamespaces(ctx),
		filesystem.UnmountBelow(d.Files.Path(dataRoot)),
		filesystem.UnmountBelow(d.Files.Path(execRoot)),
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(
		d.dropData(),
		d.Files.RemoveAll(execRoot),
		d.Files.Drop(Socket, pidFile, superviseFile, logFile, configFile, d.scriptPath()),
		d.Files.Drop(namespaceDirs()...),
		host.RemoveDeadSockets(d.Files, host.ShimSockets),
		process.RemoveCgroup(cgroup),
	)
}

func (d Daemon) stop(ctx context.Context) error {
	if !d.Files.Exists(d.scriptPath()) {
		return nil
	}
	if err := d.Units.Stop(ctx, unit); err != nil {
		return err
	}
	if err := d.Units.Disable(ctx, unit); err != nil {
		return fmt.Errorf("disable %s: %w", unit, err)
	}
	return nil
}

// dropData removes the daemon's data. The containers are already removed, so
// KeepImages keeps only images.
func (d Daemon) dropData() error {
	if d.KeepImages {
		return nil
	}
	return d.Files.RemoveAll(dataRoot)
}

// namespaceDirs returns the empty directories that containerd keeps for a
// deleted namespace.
func namespaceDirs() []string {
	var dirs []string
	for _, root := range []string{"/run/containerd", "/var/lib/containerd"} {
		for _, name := range []string{namespace, pluginsNamespace} {
			dirs = append(dirs, root+"/io.containerd.runtime.v2.task/"+name)
		}
	}
	return dirs
}
