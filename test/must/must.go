// Package must ends a test that cannot go on.
package must

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// NoError ends the test with err, unless err is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns the content of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	NoError(t, err)
	return data
}

// Write writes a file, and the directories above it. It returns the path.
func Write[T string | []byte](t testing.TB, path string, content T) string {
	t.Helper()
	NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Until waits up to half a minute until holds returns true.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}
