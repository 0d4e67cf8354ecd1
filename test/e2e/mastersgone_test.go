//go:build e2e && long

package e2e

import (
	"testing"
	"time"
)

// TestControlPlanesGone renews the certificates of three control planes, and takes control planes
// from the cluster until one is left.
func TestControlPlanesGone(t *testing.T) {
	c := newControlPlanes(t)
	owned(t, c.third)
	c.join(t)
	t.Run("certificates are renewed", func(t *testing.T) { renewals(t, c.first, c.third, c.worker) })
	c.third.sh(t, "kube-bootstrap turndown --yes")
	ready(t, c.second, 3)
	t.Run("one that died is forgotten", func(t *testing.T) { forget(t, c.first, c.third) })
	t.Run("turndown without a quorum", func(t *testing.T) { refusedTurndown(t, c.first, c.second) })
	t.Run("one is left", func(t *testing.T) {
		refusedForget(t, c.first, c.second)
		c.second.sh(t, "kube-bootstrap turndown --yes")
		voters(t, c.first, 1)
		soon(t, 2*time.Minute, "the controller manager to work alone", c.first,
			"grep -q leader-elect=false /etc/kubernetes/manifests/kube-controller-manager.yaml && kube-bootstrap status")
		ready(t, c.first, 2)
	})
}
