package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"filippo.io/age"
)

// Directory is a Place on this host.
type Directory struct{ Path string }

// Write implements Place. It does not create the directory, because the mount of another disk may be missing.
func (d Directory) Write(_ context.Context, name string, s Source, recipients []age.Recipient) (File, error) {
	path := filepath.Join(d.Path, name)
	if err := Write(path, s, recipients); err != nil {
		return File{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	return fileOf(info), nil
}

func fileOf(info fs.FileInfo) File {
	return File{Name: info.Name(), Size: info.Size(), Version: strconv.FormatInt(info.ModTime().UnixNano(), 10)}
}

// List implements Place.
func (d Directory) List(context.Context) (all []File, err error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), Suffix) || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		all = append(all, fileOf(info))
	}
	return all, nil
}

// Open implements Place.
func (d Directory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(d.Path, name))
}

// Remove implements Place.
func (d Directory) Remove(_ context.Context, name string) error {
	if err := os.Remove(filepath.Join(d.Path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old backup: %w", err)
	}
	return nil
}
