package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// DirReplaced reports whether dir was removed, or removed and created again,
// since a process started that has dir mounted at the path inside. It returns
// false if the process has ended.
func DirReplaced(files host.Files, pid int, dir, inside string) (bool, error) {
	sees, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", pid, inside))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !sees.IsDir() {
		return false, err
	}
	now, err := os.Stat(files.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && !os.SameFile(sees, now), err
}
