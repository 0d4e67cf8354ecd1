//go:build e2e

package e2e

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// TestCluster walks through the life of a cluster of two hosts.
func TestCluster(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.193.1.0/24", "e2e-a", "e2e-b")
	clusters.Life(t, made, harm)
	clusters.Up(t, made[0], made[1], "")
	t.Run("reboots", func(t *testing.T) { clusters.Reboots(t, made[0], made[1]) })
	t.Run("packets after reboots", func(t *testing.T) { traffic.Packets(t, made[0], made...) })
}

// TestBadInput runs commands with invalid input on a bare host.
func TestBadInput(t *testing.T) {
	badInput(t, hosts.New(t, "docker-28.5", "10.193.4.0/24", "e2e-g")[0], hosts.Bundle)
}

// TestSysV is for hosts that sysvinit runs.
func TestSysV(t *testing.T) {
	clusters.OtherInit(t, hosts.New(t, "sysv", "10.193.5.0/24", "e2e-h")[0], hosts.Bundle)
}

// harm is what a cluster must stand: those who mean ill, and what breaks.
func harm(t *testing.T, master, worker hosts.Machine) {
	t.Run("security", func(t *testing.T) { security(t, master, worker) })
	t.Run("settings", func(t *testing.T) { badSettings(t, master, worker) })
	t.Run("logins", func(t *testing.T) { logins(t, master) })
	t.Run("repairs", func(t *testing.T) { repairs(t, master, worker) })
}
