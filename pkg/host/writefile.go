package host

import (
	"os"
	"path/filepath"
)

// WriteFile puts data into a file of the user's, outside of what Files keeps
// account of, in one move. A path that is a link stays one.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return writeAtomic(path, data, mode)
}
