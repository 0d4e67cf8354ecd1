package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAnUpgradeOfTheSameSize is installed, even if its file is older than the copy on the
// host. A copy that is up to date stays.
func TestAnUpgradeOfTheSameSize(t *testing.T) {
	files, from := host.Files{Root: t.TempDir()}, filepath.Join(t.TempDir(), "program")
	const path = "/bin/program"
	built := time.Unix(1700000000, 5)
	for _, version := range []string{"v1", "v2"} {
		built = built.Add(time.Hour)
		must.NoError(t, os.WriteFile(from, []byte(version), 0o755))
		must.NoError(t, os.Chtimes(from, built, built))
		if isCopy(files, from, path) {
			t.Errorf("%s: another program counts as its copy", version)
		}
		must.NoError(t, installCopy(files, from, path))
		first, err := os.Stat(files.Path(path))
		must.NoError(t, err)
		if got := string(must.Read(t, files.Path(path))); got != version || !isCopy(files, from, path) {
			t.Errorf("%s: installed %s, which does not count as a copy", version, got)
		}
		must.NoError(t, installCopy(files, from, path))
		if again, err := os.Stat(files.Path(path)); err != nil || !os.SameFile(first, again) {
			t.Errorf("%s: it was written again, %v", version, err)
		}
	}
}
