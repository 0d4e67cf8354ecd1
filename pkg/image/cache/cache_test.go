package cache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
