package filesystem

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// mount is a line of mountinfo.
type mount struct {
	device, root, point string
	shared              bool
}

// covers reports whether path is the mount point or below it.
func (m mount) covers(path string) bool {
	return path == m.point || strings.HasPrefix(path, strings.TrimSuffix(m.point, "/")+"/")
}

func mounts() ([]mount, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	return parseMounts(string(table)), err
}

// parseMounts returns the mounts of a mountinfo table, first mounted first.
func parseMounts(table string) (all []mount) {
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) >= 7 {
			all = append(all, mount{fields[2], mountEscapes.Replace(fields[3]), mountEscapes.Replace(fields[4]), strings.HasPrefix(fields[6], "shared:")})
		}
	}
	return all
}

// mountEscapes replaces the octal escapes of mountinfo.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// MountsBelow returns the mount points on dir and below it, last mounted first.
func MountsBelow(dir string) ([]string, error) {
	all, err := mounts()
	return below(all, dir), err
}

func below(all []mount, dir string) (points []string) {
	for _, m := range slices.Backward(all) {
		if (mount{point: dir}).covers(m.point) {
			points = append(points, m.point)
		}
	}
	return points
}

// UnmountBelow unmounts all mounts on dir and below it, so that it can be removed.
func UnmountBelow(dir string) error {
	points, err := MountsBelow(dir)
	return errors.Join(err, unmount(points))
}

// UnmountInside unmounts all mounts below dir, but not dir itself.
func UnmountInside(dir string) error {
	points, err := MountsBelow(dir)
	return errors.Join(err, unmount(slices.DeleteFunc(points, func(point string) bool { return point == dir })))
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
	all, err := mounts()
	return around(all, dir).shared, err
}

// around returns the last mount with the longest mount point that covers path.
func around(all []mount, path string) (found mount) {
	for _, m := range all {
		if m.covers(path) && len(m.point) >= len(found.point) {
			found = m
		}
	}
	return found
}

// MountedOnItself reports whether dir is a bind mount of itself, as of ShareMount.
func MountedOnItself(dir string) (bool, error) {
	all, err := mounts()
	return mountedOnItself(all, dir), err
}

// mountedOnItself compares the root of the mount at dir with the position of
// dir in the mount that contains it.
func mountedOnItself(all []mount, dir string) bool {
	at := around(all, dir)
	if at.point != dir {
		return false
	}
	outer := around(slices.DeleteFunc(slices.Clone(all), func(m mount) bool { return m.point == dir }), dir)
	inside := strings.TrimPrefix(dir, strings.TrimSuffix(outer.point, "/"))
	return at.device == outer.device && at.root == strings.TrimSuffix(outer.root, "/")+inside
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
