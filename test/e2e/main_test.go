//go:build e2e

// Package e2e turns test hosts into real clusters and compares them with what the product promises.
package e2e

import (
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

func TestMain(m *testing.M) { os.Exit(hosts.Main(m)) }
