//go:build root

package host

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestReplaceAndPutBack(t *testing.T) {
	f := Files{Root: t.TempDir()}
	const path = "/etc/docker/daemon.json"
	must.NoError(t, os.MkdirAll(f.Path("/etc/docker"), 0o755))
	must.NoError(t, os.WriteFile(f.Path(path), []byte("owner"), 0o640))
	must.NoError(t, os.Chown(f.Path(path), 1234, 1235))
	for _, ours := range []string{"ours 1", "ours 2"} {
		must.NoError(t, f.UserFile(path).Replace([]byte(ours), 0o644))
	}
	if now := ownerOf(t, f.Path(path)); now != "640 1234:1235" {
		t.Errorf("the file of the user became %s", now)
	}
	for range 2 { // twice is harmless
		must.NoError(t, f.UserFile(path).PutBack(t.Context()))
	}
	got, err := f.Read(path)
	if err != nil || !bytes.Equal(got, []byte("owner")) || ownerOf(t, f.Path(path)) != "640 1234:1235" {
		t.Errorf("got %q %v %s", got, err, ownerOf(t, f.Path(path)))
	}
}

func ownerOf(t *testing.T, path string) string {
	t.Helper()
	may, err := accessTo(path, access{})
	must.NoError(t, err)
	return fmt.Sprintf("%o %d:%d", may.Mode, may.UID, may.GID)
}
