package hosttest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Golden compares what a test made with testdata/NAME, or writes it with UPDATE_GOLDEN.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must.Write(t, path, got)
	}
	if !bytes.Equal(got, must.Read(t, path)) {
		t.Errorf("%s differs from %s; see UPDATE_GOLDEN=1 go test ./... and git diff:\n%s", name, path, got)
	}
}
