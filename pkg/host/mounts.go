package host

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnmountBelow unmounts all mounts on dir and below it, the deepest first, so
// that the directory can be removed.
func UnmountBelow(dir string) error {
	points, err := MountsBelow(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range points {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			errs = append(errs, &os.PathError{Op: "unmount", Path: point, Err: err})
		}
	}
	return errors.Join(errs...)
}

// MountsBelow returns the mount points on dir and below it, last mounted
// first.
func MountsBelow(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountsBelow(string(table), dir), nil
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

// mountEscapes replaces the octal escapes of mountinfo.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
