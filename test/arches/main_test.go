//go:build e2e

// Package arches builds images for several architectures and runs their programs.
package arches

import (
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

func TestMain(m *testing.M) { os.Exit(hosts.Main(m)) }
