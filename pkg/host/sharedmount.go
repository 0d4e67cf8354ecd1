package host

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// SharedMount reports whether dir is on a shared mount: mounts below dir then
// propagate to other mount namespaces.
func SharedMount(dir string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	return sharedIn(string(table), dir), nil
}

// sharedIn finds the mount that dir is on, which has the longest path. If
// several mounts have the same mount point, the last one counts.
func sharedIn(table, dir string) bool {
	best, shared := "", false
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 7 {
			continue
		}
		point := mountEscapes.Replace(fields[4])
		on := dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
		if on && len(point) >= len(best) {
			best, shared = point, strings.HasPrefix(fields[6], "shared:")
		}
	}
	return shared
}

// MountedOnItself reports whether dir is a bind mount of itself, as
// ShareMount creates it.
func MountedOnItself(dir string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	return mountedOnItself(string(table), dir), nil
}

// mountedOnItself compares the root of the mount at dir with the position of
// dir in the mount that contains it.
func mountedOnItself(table, dir string) bool {
	var at, around mount
	for line := range strings.Lines(table) {
		m, ok := parseMount(line)
		switch {
		case !ok:
		case m.point == dir:
			at = m
		case strings.HasPrefix(dir, strings.TrimSuffix(m.point, "/")+"/") && len(m.point) >= len(around.point):
			around = m
		}
	}
	inside := strings.TrimPrefix(dir, strings.TrimSuffix(around.point, "/"))
	return at.device != "" && at.device == around.device && at.root == strings.TrimSuffix(around.root, "/")+inside
}

// mount is a line of mountinfo.
type mount struct{ device, root, point string }

func parseMount(line string) (mount, bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return mount{}, false
	}
	return mount{fields[2], mountEscapes.Replace(fields[3]), mountEscapes.Replace(fields[4])}, true
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

// UnmountInside unmounts all mounts below dir, but not dir itself.
func UnmountInside(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range mountsBelow(string(table), dir) {
		if point == dir {
			continue
		}
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			errs = append(errs, &os.PathError{Op: "unmount", Path: point, Err: err})
		}
	}
	return errors.Join(errs...)
}
