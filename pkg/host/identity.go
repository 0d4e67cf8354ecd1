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

// Identity returns the identity of a file, of the target of a link. A file that cannot be read has none.
func (f Files) Identity(path string) Identity {
	info, err := os.Stat(f.Path(path))
	if err != nil {
		return Identity{}
	}
	return IdentityOf(info)
}

// Identities returns the identities of files.
func (f Files) Identities(paths ...string) []Identity {
	all := make([]Identity, len(paths))
	for i, path := range paths {
		all[i] = f.Identity(path)
	}
	return all
}

// IdentityOf returns the identity of a file that os has looked at.
func IdentityOf(info fs.FileInfo) Identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}
	}
	return Identity{uint64(stat.Dev), stat.Ino, stat.Size, stat.Ctim} //nolint:unconvert // Dev has 32 bits on some architectures
}
