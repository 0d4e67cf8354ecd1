package parts

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAControlPlaneKnowsItselfWithoutAList: the host that it joined by may have left.
func TestAControlPlaneKnowsItselfWithoutAList(t *testing.T) {
	const own, first = "192.0.2.2", "192.0.2.1"
	for _, c := range []struct {
		role       string
		join, data bool
		want       []string
	}{
		{local.ControlPlane, false, true, []string{own}},
		{local.ControlPlane, true, false, []string{first}},
		{local.ControlPlane, true, true, []string{first, own}},
		{local.Worker, false, false, []string{first}},
	} {
		h := &local.Host{Config: config.Default(), Files: host.Files{Root: t.TempDir()}}
		h.Config.IPAddress, h.Config.MasterIP, h.Config.Join = netip.MustParseAddr(own), netip.MustParseAddr(first), c.join
		if c.data {
			must.NoError(t, h.Files.MkdirAll(etcd.DataDir+"/member"))
		}
		if got := New(h, c.role).Balancer.Seeds; !slices.Equal(got, c.want) {
			t.Errorf("%s, joins %t, data %t: %v, want %v", c.role, c.join, c.data, got, c.want)
		}
	}
}
