package filesystem

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// UnmountBelow unmounts all mounts on dir and below it, so that it can be removed.
func UnmountBelow(dir string) error {
	points, err := host.MountsBelow(dir)
	return errors.Join(err, unmount(points))
}

// UnmountInside unmounts all mounts below dir, but not dir itself.
func UnmountInside(dir string) error {
	points, err := host.MountsBelow(dir)
	real := host.RealPath(dir)
	return errors.Join(err, unmount(slices.DeleteFunc(points, func(point string) bool { return point == real })))
}

func unmount(points []string) error {
	return host.Each(points, func(point string) error {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			return &os.PathError{Op: "unmount", Path: point, Err: err}
		}
		return nil
	})
}

// SharedMount reports whether mounts below dir propagate to other mount namespaces.
func SharedMount(dir string) (bool, error) {
	all, err := mountinfo.GetMounts(nil)
	return shared(around(all, host.RealPath(dir))), err
}

// SharedMountIn is SharedMount in the mount namespace of a process. It returns true for the
// namespace of this process, in which ShareMount can share a directory.
func SharedMountIn(pid int, dir string) (bool, error) {
	proc := "/proc/" + strconv.Itoa(pid)
	theirs, err := os.Readlink(proc + "/ns/mnt")
	if err != nil {
		return false, err
	}
	if ours, err := os.Readlink("/proc/self/ns/mnt"); err != nil || ours == theirs {
		return true, err
	}
	table, err := os.Open(proc + "/mountinfo")
	if err != nil {
		return false, err
	}
	defer table.Close()
	all, err := mountinfo.GetMountsFromReader(table, nil)
	return shared(around(all, dir)), err
}

func shared(m mountinfo.Info) bool { return strings.HasPrefix(m.Optional, "shared:") }

// around returns the last mount with the longest mount point that covers path.
func around(all []*mountinfo.Info, path string) (found mountinfo.Info) {
	for _, m := range all {
		if host.Covers(m.Mountpoint, path) && len(m.Mountpoint) >= len(found.Mountpoint) {
			found = *m
		}
	}
	return found
}

// MountedOnItself reports whether dir is a bind mount of itself, as of ShareMount.
func MountedOnItself(dir string) (bool, error) {
	all, err := mountinfo.GetMounts(nil)
	return mountedOnItself(all, host.RealPath(dir)), err
}

// mountedOnItself compares the root of the mount at dir with the position of
// dir in the mount that contains it.
func mountedOnItself(all []*mountinfo.Info, dir string) bool {
	at := around(all, dir)
	if at.Mountpoint != dir {
		return false
	}
	outer := around(slices.DeleteFunc(slices.Clone(all), func(m *mountinfo.Info) bool {
		return m.Mountpoint == dir
	}), dir)
	inside := strings.TrimPrefix(dir, strings.TrimSuffix(outer.Mountpoint, "/"))
	return at.Major == outer.Major && at.Minor == outer.Minor && at.Root == strings.TrimSuffix(outer.Root, "/")+inside
}

// ShareMount makes dir a shared bind mount of itself.
func ShareMount(dir string) error {
	if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	if err := unix.Mount("", dir, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "share mount", Path: dir, Err: err}
	}
	return nil
}
