package cache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestAFailedBuildLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := Get(t.Context(), dir, "part", func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), errors.New("no"))
	})
	left, _ := os.ReadDir(filepath.Join(dir, "parts"))
	if err == nil || len(left) != 0 {
		t.Errorf("error %v, left %v", err, left)
	}
}

// TestAPartIsKeptAsItIs: only its files and directories are written to the disk. A link leads
// to a file of the image, which this machine may not have.
func TestAPartIsKeptAsItIs(t *testing.T) {
	part, err := Get(t.Context(), t.TempDir(), "part", func(dir string) error {
		below := filepath.Join(dir, "usr", "bin")
		return errors.Join(os.MkdirAll(below, 0o755),
			os.WriteFile(filepath.Join(below, "program"), []byte("program"), 0o755),
			os.Symlink("/nowhere/program", filepath.Join(dir, "link")))
	})
	must.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(part, "usr", "bin", "program"))
	must.NoError(t, err)
	if target, err := os.Readlink(filepath.Join(part, "link")); err != nil || target != "/nowhere/program" ||
		string(data) != "program" {
		t.Errorf("link to %q, %v; program %q", target, err, data)
	}
}

func TestTwoThatNeedOnePartMakeItOnce(t *testing.T) {
	dir := t.TempDir()
	made, begun, waits := 0, make(chan struct{}), make(chan string, 1)
	build := func(dir string) error {
		made++
		close(begun)
		if text := <-waits; !strings.Contains(text, "wait for part: another run is in progress") {
			t.Errorf("the second says %q", text)
		}
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	}
	first := make(chan error)
	go func() {
		_, err := Get(t.Context(), dir, "part", build)
		first <- err
	}()
	<-begun
	var once sync.Once
	ctx := step.WithReporter(t.Context(), func(text string, _, _ int64) { once.Do(func() { waits <- text }) })
	part, err := Get(ctx, dir, "part", func(string) error { return errors.New("made twice") })
	if err := errors.Join(err, <-first); err != nil || made != 1 {
		t.Fatal(made, err)
	}
	if _, err := os.Stat(filepath.Join(part, "whole")); err != nil {
		t.Error(err)
	}
}
