//go:build e2e

package long

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// TestKills ends every run in the middle of every step.
func TestKills(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.193.3.0/24", "e2e-e", "e2e-f")
	kills(t, made[0], made[1], hosts.Bundle)
	clusters.Spread(t, made[0])
	otherRole(t, made[0], made[1], hosts.Bundle)
	clusters.Down(t, made[1])
	refusedJoins(t, made[0], made[1], hosts.Bundle)
}
