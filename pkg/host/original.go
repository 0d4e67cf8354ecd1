package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// original is what stood at a path before we replaced it, kept once.
type original struct {
	Absent bool        `json:"absent,omitempty"`
	Mode   os.FileMode `json:"mode,omitempty"`
	Data   []byte      `json:"data,omitempty"`
	Ours   []byte      `json:"ours,omitempty"` // what we last wrote in its place
}

func originalPath(path string) string {
	return filepath.Join(StateDir, "original", path) + ".json"
}

// ErrNotOurs says that a file was changed by someone else since we replaced
// it, so that it was left as it is.
var ErrNotOurs = errors.New("was changed by someone else since; left as it is")

// Replace writes data over a file of the owner. What stood there before the
// first Replace is kept for PutBack.
func (f Files) Replace(path string, data []byte, mode os.FileMode) error {
	kept, err := f.original(path)
	if errors.Is(err, fs.ErrNotExist) {
		kept, err = f.readOriginal(path)
	}
	if err != nil {
		return err
	}
	kept.Ours = data
	if err := f.Remember(originalPath(path), kept); err != nil {
		return err
	}
	return f.Write(path, data, mode)
}

// Original returns what stood at path before we replaced it: nil if nothing
// did. It returns fs.ErrNotExist if we never replaced it.
func (f Files) Original(path string) ([]byte, error) {
	kept, err := f.original(path)
	if err != nil {
		return nil, err
	}
	return kept.Data, nil
}

// PutBack restores what Replace kept, if what stands there is still ours;
// otherwise it returns ErrNotOurs. Without a kept original it does nothing.
func (f Files) PutBack(path string) error {
	kept, err := f.original(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := f.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	restored := kept.Absent && err != nil || !kept.Absent && bytes.Equal(now, kept.Data)
	if !restored && !bytes.Equal(now, kept.Ours) {
		return &fs.PathError{Op: "put back", Path: path, Err: ErrNotOurs}
	}
	if err := errors.Join(f.restore(path, kept), f.removeHalfWritten(path)); err != nil {
		return err
	}
	return f.Remove(originalPath(path))
}

func (f Files) restore(path string, kept original) error {
	if kept.Absent {
		return f.Remove(path)
	}
	return f.Write(path, kept.Data, kept.Mode)
}

func (f Files) readOriginal(path string) (original, error) {
	data, err := f.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return original{Absent: true}, nil
	}
	return original{Mode: f.modeOf(path), Data: data}, err
}

func (f Files) original(path string) (original, error) {
	var kept original
	known, err := f.Recall(originalPath(path), &kept)
	if err == nil && !known {
		err = fs.ErrNotExist
	}
	return kept, err
}
