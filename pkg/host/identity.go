package host

import (
	"io/fs"
	"os"
	"syscall"
)

// Identity changes when a file is written or replaced. The zero Identity is that of a missing file.
type Identity struct {
	device, inode uint64
	size          int64
	changed       syscall.Timespec
}

// Identities returns the identities of files, of a link that of its target. A file that cannot be looked at
// has none.
func Identities(files Files, paths ...string) []Identity {
	all := make([]Identity, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(files.Path(path)); err == nil {
			all[i] = IdentityOf(info)
		}
	}
	return all
}

// IdentityOf returns the identity of a file that os has looked at.
func IdentityOf(info fs.FileInfo) Identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}
	}
	device := uint64(stat.Dev) //nolint:unconvert // it has 32 bits on some architectures
	return Identity{device, stat.Ino, stat.Size, changed(stat)}
}
