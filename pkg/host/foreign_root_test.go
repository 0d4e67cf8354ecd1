//go:build root

package host

import (
	"errors"
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestForeign: what an administrator has put into /tmp is gone after a reboot, and any user can put
// another file there.
func TestForeign(t *testing.T) {
	const admin, other = 1000, 1001
	for name, c := range map[string]struct {
		dir      os.FileMode
		dirOwner int
		owner    int
		mode     os.FileMode
		foreign  bool
	}{
		"of root in /tmp":              {0o777 | os.ModeSticky, 0, 0, 0o644, false},
		"of the administrator in /tmp": {0o777 | os.ModeSticky, 0, admin, 0o644, false},
		"of another user in /tmp":      {0o777 | os.ModeSticky, 0, other, 0o644, true},
		"in a home directory":          {0o755, other, other, 0o644, false},
		"that all can write":           {0o755, 0, 0, 0o666, true},
	} {
		f := Files{Root: t.TempDir()}
		must.Write(t, f.Path("/dir/file"), "")
		must.NoError(t, errors.Join(os.Chown(f.Path("/dir"), c.dirOwner, 0), os.Chmod(f.Path("/dir"), c.dir),
			os.Chown(f.Path("/dir/file"), c.owner, 0), os.Chmod(f.Path("/dir/file"), c.mode)))
		if Foreign(f, "/dir/file", admin) != c.foreign {
			t.Errorf("a file %s: foreign %t", name, !c.foreign)
		}
	}
}

// TestForeignDirectoriesAndLinks: a user can also take the place of a directory, or place a link to a
// file of root.
func TestForeignDirectoriesAndLinks(t *testing.T) {
	const other = 1001
	f := Files{Root: t.TempDir()}
	must.Write(t, f.Path("/tmp/dir/file"), "")
	must.Write(t, f.Path("/srv/file"), "")
	must.NoError(t, os.Symlink(f.Path("/srv/file"), f.Path("/tmp/link")))
	must.NoError(t, os.Symlink(f.Path("/tmp/dir/file"), f.Path("/srv/link")))
	must.NoError(t, errors.Join(os.Chmod(f.Path("/tmp"), 0o777|os.ModeSticky), os.Chown(f.Path("/tmp/dir"), other, 0),
		os.Lchown(f.Path("/tmp/link"), other, 0)))
	for path, foreign := range map[string]bool{
		"/tmp/dir/file": true, "/tmp/link": true, "/srv/link": true, "/srv/file": false, "/missing": false,
	} {
		if Foreign(f, path, 1000) != foreign {
			t.Errorf("%s: foreign %t", path, !foreign)
		}
	}
}
