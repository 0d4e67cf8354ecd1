package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// DirReplaced reports whether a process that sees the directory dir of this
// host at the path inside its own root sees another directory by now, because
// dir was removed, or removed and made again, since the process started. A
// process that has ended sees none.
func (f Files) DirReplaced(pid int, dir, inside string) (bool, error) {
	sees, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", pid, inside))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !sees.IsDir() {
		return false, err
	}
	now, err := os.Stat(f.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && !os.SameFile(sees, now), err
}
