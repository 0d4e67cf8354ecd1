package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnmountBelow unmounts whatever is mounted on dir or below it, the deepest
// first, so that the directory can be removed.
func UnmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range mountsBelow(string(table), dir) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			errs = append(errs, &os.PathError{Op: "unmount", Path: point, Err: err})
		}
	}
	return errors.Join(errs...)
}

// mountsBelow returns the mount points of a mountinfo table, last mounted first.
func mountsBelow(table, dir string) []string {
	var points []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := mountEscapes.Replace(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}

// mountEscapes are the characters that the kernel writes in octal.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// RemoveCgroup removes the control group of that name, and those below it,
// from every hierarchy. One that still has processes is an error.
func RemoveCgroup(name string) error {
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		roots, _ := filepath.Glob(pattern)
		for _, root := range roots {
			errs = append(errs, removeCgroupTree(root))
		}
	}
	return errors.Join(errs...)
}

func removeCgroupTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // one hierarchy under two names: cpu is cpu,cpuacct
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroupTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
