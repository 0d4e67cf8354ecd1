package host

import (
	"os"
	"path/filepath"
)

// WriteFile puts data into a file of the user's, outside of what Files keeps
// account of, in one move. A path that is a link stays one, and an existing file
// keeps its owner.
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
