package host

import (
	"os"
	"path/filepath"
)

// WriteFile atomically replaces a file of the user. Unlike Files.Write, it
// does not record created directories. It follows symbolic links, and an
// existing file keeps its owner.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	may, err := accessTo(path, access{})
	if err != nil {
		return err
	}
	may.Mode = mode
	return writeAtomic(path, data, may)
}
