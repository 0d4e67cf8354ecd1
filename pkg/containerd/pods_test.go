package containerd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPodsAreClaimedAfterTheNote: without the note, Undo does not know what existed before.
func TestPodsAreClaimedAfterTheNote(t *testing.T) {
	p := Pods{Files: host.Files{Root: t.TempDir()}}
	must.NoError(t, p.Files.MkdirAll(beforeRecord.Path)) // it cannot be read
	if err := p.Claim().Apply(t.Context()); err == nil || p.Files.Exists(podsFile) {
		t.Errorf("claimed, %v", err)
	}
}

// TestOnlyAnEmptyDirectoryIsRemoved: Docker may put the socket of a container into
// a directory that was empty, or remove the directory.
func TestOnlyAnEmptyDirectoryIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	must.NoError(t, os.MkdirAll(filepath.Join(dir, "of-a-container"), 0o755))
	if err := removeEmptyDir(dir); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "of-a-container")); err != nil {
		t.Fatalf("the directory was removed: %v", err)
	}
	for range 2 { // the second time, the directory is missing
		if err := removeEmptyDir(dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the empty directory remains: %v", err)
	}
}
