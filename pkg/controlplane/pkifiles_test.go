package controlplane

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestEveryIssuedCertificateIsListed(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	listed := map[string]bool{}
	for _, held := range Held() {
		one := held.Inspect(c.Files.Read, now)
		if one.Problem != "" || one.Purpose == "" || one.Signer == "" || listed[one.Name] {
			t.Errorf("%+v", one)
		}
		listed[one.Name] = true
	}
	if len(listed) != len(authorities)+len(c.leaves()) {
		t.Errorf("%d certificates are listed", len(listed))
	}
	for _, name := range []string{"apiserver", "etcd-server", "etcd-ca", "front-proxy-client", "admin.conf"} {
		if !listed[name] {
			t.Errorf("%s is not listed: %v", name, listed)
		}
	}
}

// TestDirsAreComplete: turndown of a host whose records are lost removes the directories that
// Dirs lists.
func TestDirsAreComplete(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	must.NoError(t, filepath.WalkDir(c.Files.Path(Dir), func(path string, entry fs.DirEntry, err error) error {
		if dir := strings.TrimPrefix(path, c.Files.Root); err == nil && entry.IsDir() && !slices.Contains(Dirs(), dir) {
			t.Errorf("%s is missing", dir)
		}
		return err
	}))
}
