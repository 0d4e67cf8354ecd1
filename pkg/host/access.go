package host

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// access is the mode and the owner of a file. The zero UID and GID are root.
type access struct {
	Mode os.FileMode `json:"mode,omitempty"`
	UID  int         `json:"uid,omitempty"`
	GID  int         `json:"gid,omitempty"`
}

// apply changes the owner before the mode, because chown clears the setuid
// and setgid bits.
func (a access) apply(file *os.File) error {
	if a.UID != 0 || a.GID != 0 {
		if err := file.Chown(a.UID, a.GID); err != nil {
			return err
		}
	}
	return file.Chmod(a.Mode)
}

// accessTo returns the access of the file at path, or fresh if the file does
// not exist.
func accessTo(path string, fresh access) (access, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return fresh, err
	}
	found := access{Mode: info.Mode().Perm()}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		found.UID, found.GID = int(owner.Uid), int(owner.Gid)
	}
	return found, nil
}
