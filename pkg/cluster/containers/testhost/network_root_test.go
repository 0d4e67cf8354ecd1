//go:build root

package testhost

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestANetworkThatIsTakenMeanwhile: the run of another user has created its network since preflight.
func TestANetworkThatIsTakenMeanwhile(t *testing.T) {
	subnet := netip.MustParsePrefix("10.254.250.0/28")
	first, second := unitCluster(t, "first"), unitCluster(t, "second")
	must.NoError(t, Network(first, subnet).Apply(t.Context()))
	err := Network(second, subnet).Apply(t.Context())
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "cluster-subnet-overlap" {
		t.Errorf("got %v", err)
	}
}

func unitCluster(t *testing.T, name string) containers.Cluster {
	t.Helper()
	s, err := session.Open(session.Selection{Name: fmt.Sprintf("unit-%d-%s", os.Getpid(), name),
		Provider: containers.EngineChoice{}, CacheDir: t.TempDir()}, nil)
	must.NoError(t, err)
	c, err := containers.Of(s)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := c.RemoveNetwork(context.Background(), c.Name); err != nil {
			t.Error(err)
		}
		must.NoError(t, s.Close())
	})
	return c
}
