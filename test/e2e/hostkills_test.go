//go:build e2e && long

package e2e

import "testing"

// TestKills ends every run in the middle of every step.
func TestKills(t *testing.T) {
	made := hosts(t, "docker-28.5", "10.193.3.0/24", "e2e-e", "e2e-f")
	kills(t, made[0], made[1], bundle)
	spread(t, made[0])
	otherRole(t, made[0], made[1], bundle)
	down(t, made[1])
	refusedJoins(t, made[0], made[1], bundle)
}
