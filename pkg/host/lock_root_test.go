//go:build root

package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestLockRefusesFilesOfOthers: another user knows the path of the lock of a bundle in /tmp.
func TestLockRefusesFilesOfOthers(t *testing.T) {
	const nobody = 65534
	victim := func(t *testing.T, dir string) string {
		return must.Write(t, filepath.Join(dir, "victim"), "text")
	}
	for name, prepare := range map[string]func(t *testing.T, dir, path string){
		"symbolic link": func(t *testing.T, dir, path string) { must.NoError(t, os.Symlink(victim(t, dir), path)) },
		"hard link":     func(t *testing.T, dir, path string) { must.NoError(t, os.Link(victim(t, dir), path)) },
		"pipe": func(t *testing.T, dir, path string) {
			victim(t, dir)
			must.NoError(t, syscall.Mkfifo(path, 0o666))
		},
		"file of another user": func(t *testing.T, dir, path string) {
			victim(t, dir)
			must.NoError(t, os.Chown(must.Write(t, path, ""), nobody, nobody))
		},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".bundle.lock")
		prepare(t, dir, path)
		release, err := Lock(t.Context(), path)
		if err == nil {
			release()
			t.Errorf("%s: the lock was taken", name)
		} else if errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
		if text := string(must.Read(t, filepath.Join(dir, "victim"))); text != "text" {
			t.Errorf("%s: the file of another purpose is now %q", name, text)
		}
	}
}

// TestLockInADirectoryOfAnotherUser: root takes the lock that a killed run of the user has left.
func TestLockInADirectoryOfAnotherUser(t *testing.T) {
	const nobody = 65534
	dir := t.TempDir()
	path := must.Write(t, filepath.Join(dir, ".kube.lock"), "1")
	must.NoError(t, errors.Join(os.Chown(dir, nobody, nobody), os.Chown(path, nobody, nobody)))
	release, err := Lock(t.Context(), path)
	must.NoError(t, err)
	release()
}
