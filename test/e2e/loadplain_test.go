//go:build e2e && (long || bench)

package e2e

import (
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// loadPlain is `zstd -dc BUNDLE | docker load` on a host.
func loadPlain(t *testing.T, m machine) {
	t.Helper()
	file, err := os.Open(built.bundle)
	must.NoError(t, err)
	defer file.Close()
	plain, err := zstd.NewReader(file)
	must.NoError(t, err)
	defer plain.Close()
	if _, err := (host.Command{Args: []string{"docker", "exec", "-i", m.name, "docker", "load", "-q"}, Stdin: plain}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
