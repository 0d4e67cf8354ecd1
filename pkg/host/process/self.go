package process

import (
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// self is the running executable, also if its file was removed or replaced.
const self = "/proc/self/exe"

// InstallSelf copies the running executable to path, unless it is up to date. The copy gets
// the modification time of the original.
func InstallSelf(files host.Files, path string) error { return installCopy(files, self, path) }

// SelfInstalled reports whether path is a copy of the running executable, by size and time.
func SelfInstalled(files host.Files, path string) bool { return isCopy(files, self, path) }

func installCopy(files host.Files, from, path string) error {
	if isCopy(files, from, path) {
		return nil
	}
	program, err := os.Open(from)
	if err != nil {
		return err
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return err
	}
	if err := files.WriteFrom(path, program, 0o755); err != nil {
		return err
	}
	return os.Chtimes(files.Path(path), info.ModTime(), info.ModTime())
}

// isCopy compares seconds, because some file systems keep no fractions. An upgrade may be
// older than the installed program: packages keep the time of the build.
func isCopy(files host.Files, from, path string) bool {
	original, err := os.Stat(from)
	installed, missing := os.Stat(files.Path(path))
	if err != nil || missing != nil {
		return false
	}
	return os.SameFile(original, installed) || original.Size() == installed.Size() &&
		original.ModTime().Unix() == installed.ModTime().Unix()
}
