package host

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// SameFileSystem reports whether two directories share their space. One that
// does not exist will share its parent's.
func (f Files) SameFileSystem(a, b string) bool {
	var one, other unix.Stat_t
	err := errors.Join(unix.Stat(f.Path(a), &one), unix.Stat(f.Path(b), &other))
	return errors.Is(err, fs.ErrNotExist) || err == nil && one.Dev == other.Dev
}
