package process

import (
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// self is the running executable, also if its file was removed or replaced.
const self = "/proc/self/exe"

// InstallSelf copies the running executable to path, unless it is up to date.
func InstallSelf(files host.Files, path string) error {
	if SelfInstalled(files, path) {
		return nil
	}
	program, err := os.Open(self)
	if err != nil {
		return err
	}
	defer program.Close()
	return files.WriteFrom(path, program, 0o755)
}

// SelfInstalled reports whether path is a copy of the running executable, by size and time.
func SelfInstalled(files host.Files, path string) bool {
	running, err := os.Stat(self)
	installed, missing := os.Stat(files.Path(path))
	if err != nil || missing != nil {
		return false
	}
	return os.SameFile(running, installed) || running.Size() == installed.Size() && !installed.ModTime().Before(running.ModTime())
}
