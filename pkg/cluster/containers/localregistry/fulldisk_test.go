package localregistry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// files leaves no inode.
func files(t *testing.T, dir string) {
	t.Helper()
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o600); errors.Is(err, syscall.ENOSPC) {
			return
		}
	}
	t.Fatal("there are inodes left")
}

func TestUnstorable(t *testing.T) {
	for _, one := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if err := fmt.Errorf("failed to copy: %w", &fs.PathError{Op: "write", Path: "/x", Err: one}); !unstorable(err) {
			t.Error(err)
		}
	}
	if unstorable(nil) || unstorable(io.ErrUnexpectedEOF) {
		t.Error("another error")
	}
}
