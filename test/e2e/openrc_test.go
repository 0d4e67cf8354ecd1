//go:build e2e && long

package e2e

import "testing"

// TestOpenRC is for hosts that OpenRC runs.
func TestOpenRC(t *testing.T) {
	otherInit(t, hosts(t, "openrc", "10.193.15.0/24", "e2e-rc")[0], bundle)
}
