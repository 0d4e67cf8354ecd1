//go:build e2e

package long

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// TestOpenRC is for hosts that OpenRC runs.
func TestOpenRC(t *testing.T) {
	clusters.OtherInit(t, hosts.New(t, "openrc", "10.193.15.0/24", "e2e-rc")[0], hosts.Bundle)
}
