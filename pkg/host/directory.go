package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
// and then the directory and its parents as RemoveEmpty does.
func (f Files) RemoveOthers(dir string, keep []string) error {
	names, err := f.Entries(dir)
	errs := []error{err}
	for _, name := range names {
		if !slices.Contains(keep, name) {
			errs = append(errs, os.RemoveAll(f.Path(filepath.Join(dir, name))))
		}
	}
	return errors.Join(append(errs, f.RemoveEmpty(dir))...)
}

// RemoveEmpty removes a directory and its parents while they are empty and
// were created by MkdirAll.
func (f Files) RemoveEmpty(dir string) error {
	return f.removeEmptyParents(filepath.Join(dir, "any"))
}

// Symlink atomically makes path a symbolic link to target.
func (f Files) Symlink(path, target string) error {
	if err := f.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	tmp := f.Path(filepath.Join(filepath.Dir(path), ".kube-bootstrap-link"))
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, f.Path(path))
}
