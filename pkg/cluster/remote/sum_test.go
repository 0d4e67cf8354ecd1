package remote

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestSumOfAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	var before string
	for _, content := range []string{"old", "newer"} {
		must.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		sum, err := Sum(path)
		must.NoError(t, err)
		again, err := Sum(path)
		must.NoError(t, err)
		if sum == before || sum != again {
			t.Errorf("the checksum of %q is %s, then %s, before %s", content, sum, again, before)
		}
		before = sum
	}
}
