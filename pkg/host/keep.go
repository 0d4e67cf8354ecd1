package host

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// Ours returns what we last wrote over the owner's file at path. It returns
// fs.ErrNotExist if we never replaced it.
func (f Files) Ours(path string) ([]byte, error) {
	kept, err := originalOf(path).Read(f)
	return kept.Ours, err
}

// Restore puts back what Replace kept, whatever stands there now: for a caller
// that has seen that only our own changes are lost by it.
func (f Files) Restore(path string) error {
	kept, err := originalOf(path).Read(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.restore(path, kept); err != nil {
		return err
	}
	return f.Forget(path)
}

// Forget drops what Replace kept, because the file there is the owner's again.
func (f Files) Forget(path string) error { return f.Remove(originalOf(path).Path) }

// Replaced lists the files of which Replace keeps an original.
func (f Files) Replaced() []string {
	dir := filepath.Join(StateDir, "original")
	var paths []string
	_ = filepath.WalkDir(f.Path(dir), func(path string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutPrefix(path, f.Path(dir)); ok && err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".json") {
			paths = append(paths, strings.TrimSuffix(name, ".json"))
		}
		return nil
	})
	return paths
}
