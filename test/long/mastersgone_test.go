//go:build e2e

package long

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// TestControlPlanesGone renews the certificates of three control planes, and takes control planes
// from the cluster until one is left.
func TestControlPlanesGone(t *testing.T) {
	c := clusters.NewControlPlanes(t)
	hosts.Owned(t, c.Third)
	c.Join(t)
	t.Run("certificates are renewed", func(t *testing.T) { renewals(t, c.First, c.Third, c.Worker) })
	c.Third.Sh(t, "kube-bootstrap turndown --yes")
	clusters.Ready(t, c.Second, 3)
	t.Run("one that died is forgotten", func(t *testing.T) { forget(t, c.First, c.Third) })
	t.Run("turndown without a quorum", func(t *testing.T) { refusedTurndown(t, c.First, c.Second) })
	t.Run("one is left", func(t *testing.T) {
		refusedForget(t, c.First, c.Second)
		c.Second.Sh(t, "kube-bootstrap turndown --yes")
		clusters.Voters(t, c.First, 1)
		hosts.Soon(t, 2*time.Minute, "the controller manager to work alone", c.First,
			"grep -q leader-elect=false /etc/kubernetes/manifests/kube-controller-manager.yaml && "+
				"kube-bootstrap status")
		clusters.Ready(t, c.First, 2)
	})
}
