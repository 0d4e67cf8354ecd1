package imagestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// LayerDirs finds the directories of unpacked layers, by the digests of the layers. A
// nil LayerDirs finds none.
type LayerDirs func(context.Context) (map[digest.Digest]string, error)

// unpackedDirs are the directories into which layers were unpacked.
type unpackedDirs struct {
	mu   *sync.Mutex
	dirs map[digest.Digest]string
}

func newUnpackedDirs() unpackedDirs { return unpackedDirs{&sync.Mutex{}, map[digest.Digest]string{}} }

func (u unpackedDirs) add(layer digest.Digest, dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dirs[layer] = dir
}

// share shares the files of all layers with the directories that others finds. It
// follows the unpacking, as others may wait until Docker has unpacked the same layers.
func (u unpackedDirs) share(ctx context.Context, others LayerDirs) error {
	if len(u.dirs) == 0 || others == nil {
		return nil
	}
	dirs, _ := others(ctx) // without the directories, each store has files of its own
	for layer, other := range dirs {
		if dir := u.dirs[layer]; dir != "" {
			if err := share(dir, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedSize is the size in bytes from which on a file is shared. Kubernetes is
// one file of 150 MB; most other files are small.
const sharedSize = 1 << 20

// share replaces the large files of a directory by hard links to the same files
// of another directory. The disk and the page cache then contain them once. A file
// that is not the same, or that cannot be linked, stays: the other directory may
// be on another file system.
func share(dir, other string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return shareFile(path, other, name)
	})
}

// shareFile opens the other file without leaving its directory, and links what
// it has compared, whatever happens to the name meanwhile.
func shareFile(path, other, name string) error {
	own, err := os.Open(path)
	if err != nil {
		return err
	}
	defer own.Close()
	if info, err := own.Stat(); err != nil || info.Size() < sharedSize {
		return err
	}
	same, err := os.OpenInRoot(other, name)
	if err != nil {
		return nil
	}
	defer same.Close()
	if !equalFiles(own, same) {
		return nil
	}
	return replaceByLink(path, same)
}

func replaceByLink(path string, file *os.File) error {
	link := path + ".link"
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.AT_FDCWD, link,
		unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return nil
	}
	return os.Rename(link, path)
}

// equalFiles compares owner, mode, time of modification and file capability, then
// the content: Docker does not sync its layers, so a file of it may be damaged after
// a power failure. A file that cannot be read equals none.
func equalFiles(a, b *os.File) bool {
	x, err := describe(a)
	y, otherErr := describe(b)
	return err == nil && otherErr == nil && x == y && equalContent(a, b)
}

// description contains the attributes of a file that a layer determines.
type description struct {
	mode, uid, gid uint32
	size           int64
	modified       unix.Timespec
	capability     string
}

func describe(file *os.File) (description, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return description{}, err
	}
	capability := make([]byte, 64) // struct vfs_ns_cap_data has 24
	n, err := unix.Fgetxattr(int(file.Fd()), "security.capability", capability)
	if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
		return description{}, err
	}
	mode := uint32(stat.Mode) //nolint:unconvert // it has 16 bits on macOS
	return description{mode, stat.Uid, stat.Gid, stat.Size, stat.Mtim, string(capability[:max(n, 0)])}, nil
}

// equalContent compares files of the same size.
func equalContent(a, b io.Reader) bool {
	x, y := make([]byte, 1<<18), make([]byte, 1<<18)
	for {
		n, err := io.ReadFull(a, x)
		if _, otherErr := io.ReadFull(b, y[:n]); otherErr != nil || !bytes.Equal(x[:n], y[:n]) {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}
