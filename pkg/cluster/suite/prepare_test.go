package suite

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// The directory of a registry may hold a certificate authority of the user.
func TestATestRunRemovesOnlyItsOwnFiles(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"with-ca/hosts.toml": mirrorMark + "\n", "with-ca/ca.crt": "",
		"new/hosts.toml": mirrorMark + "\n", "of-user/hosts.toml": "server = \"https://of-user\"\n",
	} {
		path = filepath.Join(dir, path)
		must.Write(t, path, text)
	}
	script := strings.ReplaceAll(removeMirrorScript, "/etc/containerd/certs.d", dir)
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for path, want := range map[string]bool{
		"with-ca/hosts.toml": false, "with-ca/ca.crt": true, "new": false, "of-user/hosts.toml": true,
	} {
		if got := session.FileExists(filepath.Join(dir, path)); got != want {
			t.Errorf("%s: there is %v, want %v", path, got, want)
		}
	}
}
