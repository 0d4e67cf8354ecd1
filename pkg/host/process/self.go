package process

import (
	"errors"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// self is the running executable, also if its file was removed or replaced.
const self = "/proc/self/exe"

// InstallSelf copies the running executable to path, unless it is up to date.
func InstallSelf(files host.Files, path string) error {
	if same, err := isSelf(files, path); err != nil || same {
		return err
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
	same, err := isSelf(files, path)
	return err == nil && same
}

func isSelf(files host.Files, path string) (bool, error) {
	running, err := os.Stat(self)
	if err != nil {
		return false, err
	}
	installed, err := os.Stat(files.Path(path))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(running, installed) || running.Size() == installed.Size() && !installed.ModTime().Before(running.ModTime()), nil
}
