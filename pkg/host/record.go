package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Record is a file, for root only, that saves a value as JSON for a later run. A file
// that Write cannot have written is Damaged, and its content is not used.
type Record[T any] struct {
	Path  string
	Valid func(T) error // nil: every value of the type is valid
}

// Damaged is the error of a record that exists and cannot be used.
type Damaged struct {
	Path string
	Err  error
}

func (d *Damaged) Error() string { return fmt.Sprintf("%s is damaged: %v", d.Path, d.Err) }
func (d *Damaged) Unwrap() error { return d.Err }

// Lost reports whether the record is missing or damaged. Other errors may be temporary.
func Lost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || IsDamaged(err)
}

// IsDamaged reports whether err contains a Damaged.
func IsDamaged(err error) bool { return errors.As(err, new(*Damaged)) }

// Read returns the saved value. The error may be fs.ErrNotExist or Damaged.
func (r Record[T]) Read(files Files) (T, error) {
	var value, none T
	data, err := files.Read(r.Path)
	if err != nil {
		return none, err
	}
	if err = json.Unmarshal(data, &value); err == nil && string(bytes.TrimSpace(data)) == "null" {
		err = errors.New("it contains no value")
	}
	if err == nil && r.Valid != nil {
		err = r.Valid(value)
	}
	if err != nil {
		return none, &Damaged{r.Path, err}
	}
	return value, nil
}

// File returns the file that Write writes.
func (r Record[T]) File(value T) (File, error) {
	data, err := json.Marshal(value)
	return File{Path: r.Path, Data: append(data, '\n')}, err
}

// Write saves a value.
func (r Record[T]) Write(files Files, value T) error {
	file, err := r.File(value)
	if err != nil {
		return err
	}
	return files.Write(file.Path, file.Data, file.mode())
}

// Diff is the part of a Check that verifies the record.
func (r Record[T]) Diff(files Files) (step.Diff, error) {
	_, err := r.Read(files)
	var damaged *Damaged
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return step.Diff{"write " + r.Path}, nil
	case errors.As(err, &damaged):
		return step.Diff{fmt.Sprintf("write %s again, because it is damaged: %v", r.Path, damaged.Err)}, nil
	}
	return nil, err
}

// DiffIfSaved is Diff for a record that need not exist.
func (r Record[T]) DiffIfSaved(files Files) (step.Diff, error) {
	if !files.Exists(r.Path) {
		return nil, nil
	}
	return r.Diff(files)
}

// Ensure saves what find returns, unless Read succeeds; find gets the error of Read.
func (r Record[T]) Ensure(files Files, find func(lost error) (T, error)) error {
	_, err := r.Read(files)
	if !Lost(err) {
		return err
	}
	value, err := find(err)
	if err != nil {
		return err
	}
	return r.Write(files, value)
}
