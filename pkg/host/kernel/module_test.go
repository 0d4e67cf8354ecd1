package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAPlainFileIsNoNamespace: Docker leaves one in /run/docker/netns.
func TestAPlainFileIsNoNamespace(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "1-abc")
	must.NoError(t, os.WriteFile(plain, nil, 0o444))
	for _, path := range []string{plain, filepath.Dir(plain), plain + "-removed"} {
		if used, err := linkKindIn(path, "vxlan"); used || err != nil {
			t.Errorf("%s: %t, %v", path, used, err)
		}
	}
}
