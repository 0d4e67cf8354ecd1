//go:build e2e && long

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// TestContract runs the contract of every step on a test host.
func TestContract(t *testing.T) {
	m := hosts(t, "docker-28.5", "10.193.6.0/24", "e2e-i")[0]
	owned(t, m) // and with that, an engine that has run containers before
	hostTest(t, m, "../contract")
}

// hostTest runs the tests of a package that are for test hosts.
func hostTest(t *testing.T, m machine, directory string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "contract.test")
	build := host.Command{Args: []string{"go", "test", "-c", "-tags", "hosttest", "-o", program, directory}, Env: []string{"CGO_ENABLED=0"}}
	if _, err := build.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.put(t, program, "/var/tmp/contract.test")
	out, err := m.try(t.Context(), "KUBE_BOOTSTRAP_TEST_BUNDLE="+bundle+" /var/tmp/contract.test -test.v")
	t.Log(out)
	if err != nil {
		t.Error(err)
	}
}
