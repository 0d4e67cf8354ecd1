package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Record is a file that keeps a value for a later run, as JSON that only root
// may read. A file that cannot be what Write wrote, because it is empty, cut or
// changed, is Damaged: its content is never used.
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

// Lost reports whether err, of Read, says that the value is not there: the
// record is missing or damaged. Any other error is about this moment alone.
func Lost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || IsDamaged(err)
}

// IsDamaged reports whether err is about a record that exists and cannot be
// used.
func IsDamaged(err error) bool { return errors.As(err, new(*Damaged)) }

// Read returns the kept value. The error is fs.ErrNotExist if there is none,
// and Damaged if it cannot be used.
func (r Record[T]) Read(files Files) (T, error) {
	var value, none T
	data, err := files.Read(r.Path)
	if err != nil {
		return none, err
	}
	if err = json.Unmarshal(data, &value); err == nil && string(bytes.TrimSpace(data)) == "null" {
		err = errors.New("it holds no value")
	}
	if err == nil && r.Valid != nil {
		err = r.Valid(value)
	}
	if err != nil {
		return none, &Damaged{r.Path, err}
	}
	return value, nil
}

// Write keeps a value.
func (r Record[T]) Write(files Files, value T) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return files.Write(r.Path, append(data, '\n'), 0o600)
}

// Diff is the part of a Check that asks for a record with a usable value.
func (r Record[T]) Diff(files Files) (step.Diff, error) {
	_, err := r.Read(files)
	var damaged *Damaged
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return step.Diff{"write " + r.Path}, nil
	case errors.As(err, &damaged):
		return step.Diff{fmt.Sprintf("write %s again, which is damaged: %v", r.Path, damaged.Err)}, nil
	}
	return nil, err
}

// Ensure keeps the value that find returns, unless a usable one is kept. The
// argument of find says whether the value is missing or damaged.
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
