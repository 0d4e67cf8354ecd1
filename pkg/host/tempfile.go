package host

import (
	"errors"
	"os"
)

// WithTempFile calls do with the path of a temporary file that contains data and
// that only root may read. The file is removed afterwards. pattern is that of
// os.CreateTemp.
func WithTempFile(pattern string, data []byte, do func(path string) error) error {
	tmp, err := os.CreateTemp("", pattern)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return do(tmp.Name())
}
