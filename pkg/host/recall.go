package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Remember keeps a value for a later run, as JSON that root alone may read.
func (f Files) Remember(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return f.Write(path, append(data, '\n'), 0o600)
}

// Recall reads what Remember kept into a value, which stays as it is when
// nothing was kept: then known is false.
func (f Files) Recall(path string, value any) (known bool, err error) {
	data, err := f.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}
