package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Entries lists the names in a directory; none if it does not exist.
func (f Files) Entries(dir string) ([]string, error) {
	entries, err := os.ReadDir(f.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// RemoveOthers removes everything in a directory except the entries in keep,
// and then the directory and its parents as RemoveEmpty does. It keeps an entry on which, or
// below which, something is mounted, and returns an error.
func (f Files) RemoveOthers(dir string, keep []string) error {
	return errors.Join(emptyDir(f, dir, keep...), f.RemoveEmpty(dir))
}

// emptyDir removes everything in a directory except the entries in keep.
func emptyDir(f Files, dir string, keep ...string) error {
	names, err := f.Entries(dir)
	others := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(keep, name) })
	return errors.Join(err, Each(others, func(name string) error {
		return removeTree(f.Path(filepath.Join(dir, name)))
	}))
}

// RemoveEmpty removes a directory and its parents while they are empty and MkdirAll created them.
func (f Files) RemoveEmpty(dir string) error {
	return f.removeEmptyParents(filepath.Join(dir, "any"))
}

// Symlink atomically makes path a symbolic link to target.
func (f Files) Symlink(path, target string) error {
	if err := f.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	// Remove and PutBack remove a file of this name, which a kill leaves.
	tmp := f.Path(filepath.Join(filepath.Dir(path), strings.TrimSuffix(halfWritten(path), "*")+"link"))
	if err := removeFile(tmp); err != nil {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, f.Path(path))
}

// LinkTarget returns the target of the symbolic link at path, or "" if there is no link.
func (f Files) LinkTarget(path string) (string, error) {
	target, err := os.Readlink(f.Path(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) { // missing, or no link
		return "", nil
	}
	return target, err
}

// MkdirPrivate is MkdirAll with mode 0700 for dir.
func (f Files) MkdirPrivate(dir string) error {
	if err := f.MkdirAll(dir); err != nil {
		return err
	}
	return os.Chmod(f.Path(dir), 0o700)
}

// IsPrivate reports whether dir is a directory with mode 0700.
func (f Files) IsPrivate(dir string) bool {
	info, err := os.Lstat(f.Path(dir))
	return err == nil && info.IsDir() && info.Mode().Perm() == 0o700
}

// ExistsMatch reports whether a path matches a shell pattern, "/etc/rc2.d/S*name".
func (f Files) ExistsMatch(pattern string) bool { return len(f.Match(pattern)) > 0 }

// Match returns the host's paths that match a shell pattern.
func (f Files) Match(pattern string) []string {
	found, _ := filepath.Glob(f.Path(pattern)) // none for a malformed pattern
	for i, path := range found {
		found[i] = filepath.Join("/", strings.TrimPrefix(path, f.Path("/")))
	}
	return found
}
