package host

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// RealPath returns path without symbolic links, as the table of mounts has it. Administrators
// move directories such as /var/lib/kubelet to another disk by a symbolic link. A part of path
// that does not exist stays as it is.
func RealPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if path = filepath.Clean(path); path == "/" || path == "." {
		return path
	}
	return filepath.Join(RealPath(filepath.Dir(path)), filepath.Base(path))
}

// Covers reports whether path is the mount point or below it.
func Covers(point, path string) bool {
	return path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
}

// MountsBelow returns the mount points on dir and below it, last mounted first.
func MountsBelow(dir string) ([]string, error) { return mountsBelow(RealPath(dir)) }

func mountsBelow(dir string) ([]string, error) {
	all, err := mountinfo.GetMounts(nil)
	return below(all, dir), err
}

func below(all []*mountinfo.Info, dir string) (points []string) {
	for _, m := range slices.Backward(all) {
		if Covers(dir, m.Mountpoint) {
			points = append(points, m.Mountpoint)
		}
	}
	return points
}
