package host

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// SameFileSystem reports whether two directories are on one file system. It
// returns true if one of them does not exist, because it will be created on
// the file system of its parent.
func (f Files) SameFileSystem(a, b string) bool {
	var one, other unix.Stat_t
	err := errors.Join(unix.Stat(f.Path(a), &one), unix.Stat(f.Path(b), &other))
	return errors.Is(err, fs.ErrNotExist) || err == nil && one.Dev == other.Dev
}
