// Package filesystem is about the file systems of this machine: their space and mounts.
package filesystem

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Same reports whether two directories are on one file system. It returns true if one
// of them does not exist, because its parent's file system will contain it.
func Same(files host.Files, a, b string) bool {
	var one, other unix.Stat_t
	err := errors.Join(unix.Stat(files.Path(a), &one), unix.Stat(files.Path(b), &other))
	return errors.Is(err, fs.ErrNotExist) || err == nil && one.Dev == other.Dev
}

// FreeBytes returns the free space of the file system of dir, or of its nearest parent.
func FreeBytes(files host.Files, dir string) (int64, error) {
	stat, err := statfs(files, dir)
	return int64(stat.Bavail) * int64(stat.Bsize), err //nolint:unconvert // an int32 on 32-bit machines
}

// FreeFiles returns the number of free inodes of a file system, the maximum if it has no limit.
func FreeFiles(files host.Files, dir string) (uint64, error) {
	stat, err := statfs(files, dir)
	if stat.Files == 0 {
		return math.MaxUint64, err
	}
	return stat.Ffree, err
}

// TotalBytes returns the size of the file system of dir.
func TotalBytes(files host.Files, dir string) (int64, error) {
	stat, err := statfs(files, dir)
	return int64(stat.Blocks) * int64(stat.Bsize), err //nolint:unconvert // an int32 on 32-bit machines
}

func statfs(files host.Files, dir string) (stat unix.Statfs_t, err error) {
	err = unix.Statfs(files.Path(dir), &stat)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Statfs(files.Path(dir), &stat)
	}
	return stat, err
}
