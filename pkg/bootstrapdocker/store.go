package bootstrapdocker

import (
	"errors"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
)

// storeFile exists if containerd had no data before kube-bootstrap started
// it.
const storeFile = host.StateDir + "/containerd-store"

// storeDirs are the persistent and the temporary directory of containerd.
var storeDirs = []string{"/var/lib/containerd", "/run/containerd"}

// noteStore records that the containerd of kube-bootstrap's init script is
// the first one on this host.
func (d Daemon) noteStore() error {
	if d.Units.Init() == "systemd" || d.Files.Exists(containerdScript) || d.Files.Exists(storeFile) {
		return nil
	}
	entries, err := os.ReadDir(d.Files.Path(storeDirs[0]))
	if len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return d.Files.Write(storeFile, nil, 0o600)
}

// dropStore removes the data of that containerd, including images of pods.
func (d Daemon) dropStore() error {
	if d.KeepImages || !d.Files.Exists(storeFile) {
		return nil
	}
	for _, dir := range storeDirs {
		if err := errors.Join(filesystem.UnmountBelow(d.Files.Path(dir)), d.Files.RemoveAll(dir)); err != nil {
			return err
		}
	}
	return d.Files.Remove(storeFile)
}
