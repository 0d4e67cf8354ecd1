//go:build root

package maindocker

import (
	"os"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestUnmergeKeepsTheAccess: daemon.json may contain the password of a proxy.
func TestUnmergeKeepsTheAccess(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	write(t, files, `{"mtu": 9000}`)
	must.NoError(t, os.Chmod(files.Path(daemonJSON), 0o600))
	must.NoError(t, os.Chown(files.Path(daemonJSON), 1234, 1235))
	put(t, files, lease)
	now, err := readSettings(files)
	must.NoError(t, err)
	now["debug"] = true // by the user, in an editor that writes to the same file
	must.NoError(t, os.WriteFile(files.Path(daemonJSON), encode(now), 0o600))
	must.NoError(t, unmergeFile(t.Context(), files))
	info, err := os.Stat(files.Path(daemonJSON))
	must.NoError(t, err)
	if owner := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o600 || owner.Uid != 1234 || owner.Gid != 1235 {
		t.Errorf("the file is now %s of %d:%d", info.Mode(), owner.Uid, owner.Gid)
	}
}
