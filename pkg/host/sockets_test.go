package host

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestRemoveDeadSockets(t *testing.T) {
	files, dir := Files{}, t.TempDir()
	other := filepath.Join(t.TempDir(), "other") // the processes' way to the same directory
	must.NoError(t, os.Symlink(dir, other))
	open, dead := filepath.Join(dir, "open.sock"), filepath.Join(dir, "dead.sock")
	for _, path := range []string{open, dead} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{
			Name: filepath.Join(other, filepath.Base(path)), Net: "unix",
		})
		must.NoError(t, err)
		listener.SetUnlinkOnClose(false)
		if path == open {
			defer listener.Close()
			continue
		}
		must.NoError(t, listener.Close())
	}
	must.NoError(t, RemoveDeadSockets(files, dir+"/*.sock"))
	if files.Exists(dead) || !files.Exists(open) {
		t.Errorf("dead exists: %t, open exists: %t", files.Exists(dead), files.Exists(open))
	}
}
