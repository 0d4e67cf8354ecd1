package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
)

// Fingerprint returns a hash of files, 16 hexadecimal digits; missing ones do not count.
// A container that reads them only at its start has it in its environment, so that a
// changed file replaces the container.
func (f Files) Fingerprint(paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		data, err := f.Read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
