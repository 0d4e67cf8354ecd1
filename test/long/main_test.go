//go:build e2e

// Package long has the tests of real clusters that take too long for each run of the tests.
package long

import (
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

func TestMain(m *testing.M) { os.Exit(hosts.Main(m)) }
