package bootstrapdocker

import (
	"errors"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// storeFile exists where no containerd had kept anything before ours.
const storeFile = host.StateDir + "/containerd-store"

// storeDirs are where containerd keeps what lasts, and what does not.
var storeDirs = []string{"/var/lib/containerd", "/run/containerd"}

// noteStore remembers that the containerd that our init script starts is the
// first one here.
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

// dropStore removes what that containerd kept, images of pods too.
func (d Daemon) dropStore() error {
	if d.KeepImages || !d.Files.Exists(storeFile) {
		return nil
	}
	for _, dir := range storeDirs {
		if err := errors.Join(host.UnmountBelow(d.Files.Path(dir)), d.Files.RemoveAll(dir)); err != nil {
			return err
		}
	}
	return d.Files.Remove(storeFile)
}
