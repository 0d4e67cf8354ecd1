//go:build root

package imagestore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestShare: only a file that is the same in all that a layer determines becomes a
// link, and nothing outside of the other directory is used.
func TestShare(t *testing.T) {
	large := bytes.Repeat([]byte("kubernetes"), sharedSize)
	changed := bytes.Clone(large)
	changed[len(changed)-1]++
	for name, c := range map[string]struct {
		own, other []byte
		change     func(t *testing.T, other string)
		shared     bool
	}{
		"the same":      {own: large, other: large, shared: true},
		"small":         {own: large[:100], other: large[:100]},
		"other content": {own: large, other: changed},
		"cut off":       {own: large, other: large[:2*sharedSize]},
		"other mode": {own: large, other: large,
			change: func(t *testing.T, p string) { must.NoError(t, os.Chmod(p, 0o700)) }},
		"other owner": {own: large, other: large,
			change: func(t *testing.T, p string) { must.NoError(t, os.Chown(p, 100000, 100000)) }},
		"modified later": {own: large, other: large,
			change: func(t *testing.T, p string) { must.NoError(t, os.Chtimes(p, time.Time{}, time.Now())) }},
		"missing": {own: large, other: large,
			change: func(t *testing.T, p string) { must.NoError(t, os.Remove(p)) }},
		"a directory": {own: large, other: large,
			change: func(t *testing.T, p string) {
				must.NoError(t, os.Remove(p))
				must.NoError(t, os.Mkdir(p, 0o755))
			}},
		"behind a link outside": {own: large, other: large, change: moveOutside},
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			own, same := writeOld(t, dir, c.own), writeOld(t, other, c.other)
			if c.change != nil {
				c.change(t, same)
			}
			must.NoError(t, share(dir, other))
			data, err := os.ReadFile(own)
			if err != nil || !bytes.Equal(data, c.own) {
				t.Errorf("the file has changed: %v", err)
			}
			if got := sameFile(t, own, same); got != c.shared {
				t.Errorf("shared: %v, want %v", got, c.shared)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(left) != 1 {
				t.Errorf("files left: %v %v", left, err)
			}
		})
	}
}

// writeOld writes bin/program with a fixed time of modification.
func writeOld(t *testing.T, dir string, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(dir, "bin", "program")
	must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.NoError(t, os.WriteFile(path, data, 0o755))
	must.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(0, 0)))
	return path
}

// moveOutside moves a file to another directory, to which its own becomes a link.
func moveOutside(t *testing.T, path string) {
	t.Helper()
	outside := filepath.Join(t.TempDir(), "bin")
	must.NoError(t, os.Rename(filepath.Dir(path), outside))
	must.NoError(t, os.Symlink(outside, filepath.Dir(path)))
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	must.NoError(t, err)
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
