//go:build e2e

package long

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// TestOldDocker walks through the life of a cluster with the oldest Docker that a host image has,
// changes the settings of its components, and tries every backend of flannel.
func TestOldDocker(t *testing.T) {
	made := hosts.New(t, "docker-26.1", "10.193.2.0/24", "e2e-c", "e2e-d")
	clusters.Life(t, made, func(t *testing.T, master, _ hosts.Machine) {
		t.Run("components", func(t *testing.T) { changeComponents(t, master) })
	})
	t.Run("host-gw", func(t *testing.T) {
		clusters.Up(t, made[0], made[1], "--flannel-backend host-gw")
		traffic.Packets(t, made[0], made...)
		clusters.Down(t, made[1], made[0])
	})
	t.Run("other backends", func(t *testing.T) { backends(t, made[0], made[1]) })
}
