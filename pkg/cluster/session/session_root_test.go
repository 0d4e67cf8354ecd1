//go:build root

package session_test

import (
	"errors"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestASessionClosesItsConnections, also those of a run that fails. It opens one per node.
func TestASessionClosesItsConnections(t *testing.T) {
	d := providertest.New(t)
	d.Add(t, "k", controlPlane)
	failed := errors.New("failed")
	err := session.Do(t.Context(), optionsOf(t, d), session.Requirements{}, func(s *session.Session, _ topology.State) error {
		for range 2 {
			must.NoError(t, access.Run(t.Context(), s.Node(controlPlane.Name), "true"))
		}
		if n := d.Connections(); n != 1 {
			t.Errorf("%d connections to one node", n)
		}
		return failed
	})
	if !errors.Is(err, failed) || d.Connections() != 0 {
		t.Errorf("%v, %d connections are left", err, d.Connections())
	}
}
