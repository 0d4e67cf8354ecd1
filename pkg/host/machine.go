package host

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// HostName returns the host name in lower case, as a node is named.
func HostName() (string, error) {
	name, err := os.Hostname()
	return strings.ToLower(name), err
}

// FreeBytes returns the free space of the file system of dir, or of its
// nearest existing parent.
func (f Files) FreeBytes(dir string) (int64, error) {
	stat, err := f.statfs(dir)
	return int64(stat.Bavail) * int64(stat.Bsize), err //nolint:unconvert // an int32 on 32-bit machines
}

// FreeFiles returns the number of free inodes of the file system of dir, or
// the maximum if the file system has no limit.
func (f Files) FreeFiles(dir string) (uint64, error) {
	stat, err := f.statfs(dir)
	if stat.Files == 0 {
		return math.MaxUint64, err
	}
	return stat.Ffree, err
}

// TotalBytes returns the size of the file system of dir.
func (f Files) TotalBytes(dir string) (int64, error) {
	stat, err := f.statfs(dir)
	return int64(stat.Blocks) * int64(stat.Bsize), err //nolint:unconvert // an int32 on 32-bit machines
}

func (f Files) statfs(dir string) (stat unix.Statfs_t, err error) {
	err = unix.Statfs(f.Path(dir), &stat)
	for errors.Is(err, unix.ENOENT) && dir != "/" {
		dir = dir[:max(strings.LastIndex(dir, "/"), 0)]
		if dir == "" {
			dir = "/"
		}
		err = unix.Statfs(f.Path(dir), &stat)
	}
	return stat, err
}

// PortFree returns an error if another process listens on the TCP port.
func PortFree(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}

// InstallSelf copies the running executable to path, unless it is up to date.
func (f Files) InstallSelf(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if same, err := f.isSelf(path); err != nil || same {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return f.Write(path, data, 0o755)
}

// SelfInstalled reports whether path is a copy of the running executable. It
// compares the size and the modification time.
func (f Files) SelfInstalled(path string) bool {
	same, err := f.isSelf(path)
	return err == nil && same
}

func (f Files) isSelf(path string) (bool, error) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false, err
	}
	installed, err := os.Stat(f.Path(path))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(self, installed) || self.Size() == installed.Size() && !installed.ModTime().Before(self.ModTime()), nil
}
