//go:build e2e && long

package e2e

import "testing"

// TestOldDocker walks through the life of a cluster with the oldest Docker that a host image has,
// changes the settings of its components, and tries every backend of flannel.
func TestOldDocker(t *testing.T) {
	made := hosts(t, "docker-26.1", "10.193.2.0/24", "e2e-c", "e2e-d")
	life(t, made, func(t *testing.T, master, _ machine) {
		t.Run("components", func(t *testing.T) { changeComponents(t, master) })
	})
	t.Run("host-gw", func(t *testing.T) {
		up(t, made[0], made[1], "--flannel-backend host-gw")
		packets(t, made[0], made...)
		down(t, made[1], made[0])
	})
	t.Run("other backends", func(t *testing.T) { backends(t, made[0], made[1]) })
}
