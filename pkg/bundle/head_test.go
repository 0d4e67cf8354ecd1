package bundle

import (
	"os"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestOpenAfterAChange: a process that has opened a bundle reads it again after the file is
// replaced, overwritten or cut short.
func TestOpenAfterAChange(t *testing.T) {
	path, other := writeFor(t, "amd64"), writeFor(t, "arm")
	archs := func() []string {
		b, err := Open(path)
		must.NoError(t, err)
		defer b.Close()
		return b.Archs()
	}
	first := must.Read(t, path)
	for range 2 {
		if got := archs(); !slices.Equal(got, []string{"amd64"}) {
			t.Errorf("at first: %v", got)
		}
	}
	must.NoError(t, os.Rename(other, path))
	if got := archs(); !slices.Equal(got, []string{"arm"}) {
		t.Errorf("replaced: %v", got)
	}
	must.NoError(t, os.WriteFile(path, first, 0o600))
	if got := archs(); !slices.Equal(got, []string{"amd64"}) {
		t.Errorf("overwritten: %v", got)
	}
	must.NoError(t, os.Truncate(path, int64(len(first)/2)))
	if b, err := Open(path); err == nil {
		b.Close()
		t.Error("cut short: accepted")
	}
}
