package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// access is the mode and the owner of a file. The zero UID and GID are root.
type access struct {
	Mode os.FileMode `json:"mode,omitempty"`
	UID  int         `json:"uid,omitempty"`
	GID  int         `json:"gid,omitempty"`
}

// apply changes the owner first, because chown clears the setuid and setgid bits.
func (a access) apply(file *os.File) error {
	if a.UID != 0 || a.GID != 0 {
		if err := file.Chown(a.UID, a.GID); err != nil {
			return err
		}
	}
	return file.Chmod(a.Mode)
}

// accessTo returns the access of the file at path, or fresh if it does not exist.
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

// WriteFile atomically replaces a file of the user, which keeps its owner. It follows
// symbolic links and, unlike Files.Write, records no directories.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	may, err := accessTo(path, access{})
	if err != nil {
		return err
	}
	may.Mode = mode
	return writeAtomic(path, bytes.NewReader(data), may)
}

// UnnamedFile creates a file in a directory, or in the system's directory of temporary
// files for "", and removes its name: the kernel frees it also if this process is killed.
func UnnamedFile(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, ".kube-bootstrap-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// WithTempFile calls do with the path of a file that contains data and that only root may
// read, and then removes it. pattern is that of os.CreateTemp.
func WithTempFile(pattern string, data []byte, do func(path string) error) error {
	tmp, err := os.CreateTemp("", pattern)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return do(tmp.Name())
}
