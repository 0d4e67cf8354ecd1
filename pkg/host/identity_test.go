package host

import (
	"os"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestIdentity changes with each write, also of the same content, and stays otherwise.
func TestIdentity(t *testing.T) {
	files := Files{Root: t.TempDir()}
	const path = "/a"
	seen := map[Identity]bool{}
	for _, change := range []func() error{
		func() error { return nil }, // it is missing
		func() error { return files.Write(path, []byte("one"), 0o600) },
		func() error { return files.Write(path, []byte("one"), 0o600) },
		func() error { return os.WriteFile(files.Path(path), []byte("two"), 0o600) },
		func() error { return os.Chmod(files.Path(path), 0o644) },
	} {
		time.Sleep(20 * time.Millisecond) // longer than the clock of the file system stands
		must.NoError(t, change())
		now := Identities(files, path)[0]
		if seen[now] {
			t.Errorf("after change %d: %+v", len(seen), now)
		}
		seen[now] = true
	}
	must.NoError(t, files.Remove(path))
	if Identities(files, path)[0] != (Identity{}) {
		t.Error("a missing file has an identity")
	}
}
