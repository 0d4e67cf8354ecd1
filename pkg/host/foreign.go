package host

import (
	"errors"
	"path/filepath"
	"syscall"
)

const writableByAll = 0o002

// Foreign reports whether a user other than root and owner can have put the file at path there. In
// a directory that all users can write, such as /tmp, a path belongs to the first who takes it once
// a reboot has removed the file. A missing file is not foreign.
func Foreign(files Files, path string, owner int) bool {
	at := files.Path(path)
	var file syscall.Stat_t
	if syscall.Stat(at, &file) != nil {
		return false
	}
	return file.Mode&writableByAll != 0 || takenBy(at, owner) || takenBy(RealPath(at), owner)
}

// takenBy reports whether an element of path in a directory that all users can write belongs
// neither to root nor to owner.
func takenBy(path string, owner int) bool {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		var element, dir syscall.Stat_t
		if errors.Join(syscall.Lstat(path, &element), syscall.Stat(filepath.Dir(path), &dir)) != nil {
			return true
		}
		if dir.Mode&writableByAll != 0 && element.Uid != 0 && int(element.Uid) != owner {
			return true
		}
	}
	return false
}

// Owner returns the user who owns the file at path.
func Owner(files Files, path string) (int, error) {
	var file syscall.Stat_t
	err := syscall.Stat(files.Path(path), &file)
	return int(file.Uid), err
}
