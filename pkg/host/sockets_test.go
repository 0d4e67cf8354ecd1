package host

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveDeadSockets(t *testing.T) {
	files, dir := Files{}, t.TempDir()
	other := filepath.Join(t.TempDir(), "other") // the processes' way to the same directory
	if err := os.Symlink(dir, other); err != nil {
		t.Fatal(err)
	}
	open, dead := filepath.Join(dir, "open.sock"), filepath.Join(dir, "dead.sock")
	for _, path := range []string{open, dead} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(other, filepath.Base(path)), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false)
		if path == open {
			defer listener.Close()
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveDeadSockets(files, dir+"/*.sock"); err != nil {
		t.Fatal(err)
	}
	if files.Exists(dead) || !files.Exists(open) {
		t.Errorf("dead exists: %t, open exists: %t", files.Exists(dead), files.Exists(open))
	}
}
