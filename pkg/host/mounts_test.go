package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestBelow(t *testing.T) {
	const table = `21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
22 21 8:2 / /var/lib/c rw - ext4 /dev/sda2 rw
23 22 8:3 / /var/lib/c/a\040b rw master:4 - ext4 /dev/sda3 rw
24 21 8:4 / /var/lib/cd rw - ext4 /dev/sda4 rw
`
	all, err := mountinfo.GetMountsFromReader(strings.NewReader(table), nil)
	must.NoError(t, err)
	for dir, want := range map[string]string{
		"/var/lib/c": "/var/lib/c/a b, /var/lib/c", "/var/lib/c/a b": "/var/lib/c/a b", "/var/lib/c/a": "",
		"/var/lib/cd": "/var/lib/cd",
	} {
		if got := strings.Join(below(all, dir), ", "); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
}

func TestRealPath(t *testing.T) {
	dir := t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(dir, "to"), 0o755))
	must.NoError(t, os.Symlink("to", filepath.Join(dir, "link")))
	real := RealPath(dir)
	for path, want := range map[string]string{"link": "to", "link/missing/x": "to/missing/x", "missing": "missing"} {
		if got := RealPath(filepath.Join(dir, path)); got != filepath.Join(real, want) {
			t.Errorf("%s: got %s", path, got)
		}
	}
	if RealPath("/") != "/" {
		t.Error("the root is another directory")
	}
}
