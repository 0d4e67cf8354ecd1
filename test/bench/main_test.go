//go:build e2e

// Package bench measures clusters, bundles and kubeadm on test hosts.
package bench

import (
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

func TestMain(m *testing.M) { os.Exit(hosts.Main(m)) }
