package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
)

// Fingerprint tells one content of files from another: a service that reads
// them only when it starts has it in its environment, so that other content
// replaces the container. Files that are not there do not count.
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
