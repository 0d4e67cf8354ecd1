package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
)

// Fingerprint returns a hash of the content of files, 16 hexadecimal digits.
// A container that reads the files only at its start has the hash in its
// environment, so that a changed file replaces the container. Missing files
// do not count.
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
