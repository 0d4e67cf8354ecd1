//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// Memory returns a file that is in memory only.
func Memory() (*os.File, error) {
	return nil, errors.New("only Linux has files that are in memory only")
}
