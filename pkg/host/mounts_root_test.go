//go:build root

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// mounted mounts a directory with a file of the user on the directory at path, and returns the file.
func mounted(t *testing.T, f Files, path string) (file string) {
	t.Helper()
	users := t.TempDir()
	file = filepath.Join(users, "data")
	must.NoError(t, os.WriteFile(file, []byte("of the user"), 0o600))
	must.NoError(t, os.MkdirAll(f.Path(path), 0o755))
	must.NoError(t, unix.Mount(users, f.Path(path), "", unix.MS_BIND, ""))
	point := RealPath(f.Path(path))
	t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
	return file
}

// TestRemoveAllKeepsTheDataOfMounts: os.RemoveAll descends into a mount, also if a symbolic link
// hides that it is one, and removes the data of another disk or of an NFS server.
func TestRemoveAllKeepsTheDataOfMounts(t *testing.T) {
	for name, remove := range map[string]func(Files) error{
		"RemoveAll":    func(f Files) error { return f.RemoveAll("/var/lib/ours") },
		"RemoveOthers": func(f Files) error { return f.RemoveOthers("/var/lib/ours", nil) },
	} {
		for _, link := range []bool{false, true} {
			f := Files{Root: t.TempDir()}
			if link {
				must.NoError(t, os.MkdirAll(f.Path("/data/lib"), 0o755))
				must.NoError(t, os.MkdirAll(f.Path("/var"), 0o755))
				must.NoError(t, os.Symlink(f.Path("/data/lib"), f.Path("/var/lib")))
			}
			kept := mounted(t, f, "/var/lib/ours/a/b")
			err := remove(f)
			if err == nil || !strings.Contains(err.Error(), "umount "+RealPath(f.Path("/var/lib/ours/a/b"))) {
				t.Errorf("%s, link %t: got %v", name, link, err)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("%s, link %t: the data of the user is gone: %v", name, link, err)
			}
			must.NoError(t, unix.Unmount(RealPath(f.Path("/var/lib/ours/a/b")), 0))
			must.NoError(t, remove(f))
			if f.Exists("/var/lib/ours/a") {
				t.Errorf("%s, link %t: the directory is left after the unmount", name, link)
			}
		}
	}
}

// TestRemoveAllEmptiesAMountPoint: a directory of kube-bootstrap may be a disk of its own, which
// stays mounted.
func TestRemoveAllEmptiesAMountPoint(t *testing.T) {
	f := Files{Root: t.TempDir()}
	data := mounted(t, f, "/var/lib/ours")
	must.NoError(t, f.RemoveAll("/var/lib/ours"))
	if _, err := os.Stat(data); err == nil || !f.Exists("/var/lib/ours") {
		t.Errorf("data: %v, mount point exists: %t", err, f.Exists("/var/lib/ours"))
	}
}
