package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// RemoveDeadSockets removes the Unix sockets that match a pattern and that no
// process of this network namespace listens on.
func (f Files) RemoveDeadSockets(pattern string) error {
	open, err := f.Read("/proc/net/unix")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(open)) // the last field of a line is the path
	var errs []error
	for _, path := range f.Match(pattern) {
		if !slices.ContainsFunc(fields, func(open string) bool { return f.same(open, path) }) {
			errs = append(errs, f.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// same reports whether two paths lead to one file: a process may have reached
// /run by /var/run.
func (f Files) same(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	first, errFirst := os.Stat(f.Path(a))
	second, errSecond := os.Stat(f.Path(b))
	return errFirst == nil && errSecond == nil && os.SameFile(first, second)
}
