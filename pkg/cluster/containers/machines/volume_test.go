package machines

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestCopyScript runs the script of Volumes.Copy on directories of this machine.
func TestCopyScript(t *testing.T) {
	from, to := t.TempDir(), []string{t.TempDir(), t.TempDir()}
	for name, mode := range map[string]os.FileMode{
		"layer/program": 0o755, "layer/two\nlines": 0o600, "meta.db": 0o640, "engine-id": 0o600, "own/a": 0o600,
	} {
		must.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o750))
		must.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(name), mode))
	}
	must.NoError(t, os.Link(filepath.Join(from, "layer/program"), filepath.Join(from, "layer/second")))
	must.NoError(t, os.WriteFile(filepath.Join(to[0], "remains"), nil, 0o600)) // of a copy that was killed

	args := append([]string{"-c", copyScript, "sh", "find layer -type f -print0; false", "engine-id own/*", from},
		to...)
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range to {
		for name, shared := range map[string]bool{
			"layer/program": true, "layer/second": true, "layer/two\nlines": true, "meta.db": false,
		} {
			if was, is := inode(t, filepath.Join(from, name)),
				inode(t, filepath.Join(dir, name)); (was == is) != shared {
				t.Errorf("%s: is one file %v, want %v", name, was == is, shared)
			}
		}
		was, err := os.Stat(filepath.Join(from, "layer"))
		must.NoError(t, err)
		if is, err := os.Stat(filepath.Join(dir, "layer")); err != nil || is.Mode() != was.Mode() ||
			!is.ModTime().Equal(was.ModTime()) {
			t.Errorf("directory %v, want %v: %v", is, was, err)
		}
		for _, name := range []string{"remains", "engine-id", "own/a"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("the copy has %s", name)
			}
		}
	}
}

// TestCopyScriptFails, because half a copy must not become the disk of a host.
func TestCopyScriptFails(t *testing.T) {
	err := exec.CommandContext(t.Context(), "/bin/sh", "-c", copyScript, "sh", "true", "", t.TempDir(),
		"/dev/null/none").Run()
	if err == nil {
		t.Error("a copy to no directory is no error")
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	must.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}
