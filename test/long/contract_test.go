//go:build e2e

package long

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// TestContract runs the contract of every step on a test host.
func TestContract(t *testing.T) {
	m := hosts.New(t, "docker-28.5", "10.193.6.0/24", "e2e-i")[0]
	hosts.Owned(t, m) // and with that, an engine that has run containers before
	hostTest(t, m, "../contract")
}

// hostTest runs the tests of a package that are for test hosts.
func hostTest(t *testing.T, m hosts.Machine, directory string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "contract.test")
	build := host.Command{
		Args: []string{"go", "test", "-c", "-tags", "hosttest", "-o", program, directory},
		Env:  []string{"CGO_ENABLED=0"},
	}
	if _, err := build.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Put(t, program, "/var/tmp/contract.test")
	out, err := m.Try(t.Context(), "KUBE_BOOTSTRAP_TEST_BUNDLE="+hosts.Bundle+" /var/tmp/contract.test -test.v")
	t.Log(out)
	if err != nil {
		t.Error(err)
	}
}
