//go:build root

package links_test

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestVxlan(t *testing.T) {
	within(t)
	vxlan := links.Vxlan{Name: "vx", ID: 7, Local: netip.MustParseAddr("10.5.0.1"), MAC: "0a:00:00:00:00:01"}
	for range 2 { // the second time, the link exists
		must.NoError(t, links.AddVxlan(vxlan))
	}
	if got := find(t, "vx"); got.Type != "vxlan" || got.MAC != vxlan.MAC || got.MTU != 1450 {
		t.Errorf("the link is %+v", got)
	}
	must.NoError(t, links.SetMAC("vx", "0a:00:00:00:00:02"))
	if got := find(t, "vx").MAC; got != "0a:00:00:00:00:02" {
		t.Errorf("its MAC address is %s", got)
	}
	vxlan.Name, vxlan.Local = "other", netip.MustParseAddr("10.5.0.9")
	if err := links.AddVxlan(vxlan); err == nil {
		t.Error("an address of another host is accepted")
	}
}

// TestAddVxlanReplacesALink that sends other packets than the wanted one.
func TestAddVxlanReplacesALink(t *testing.T) {
	within(t)
	vxlan := links.Vxlan{Name: "vx", ID: 7, Local: netip.MustParseAddr("10.5.0.1"), MAC: "0a:00:00:00:00:01"}
	for _, c := range []struct {
		link     string
		replaced bool
	}{
		{"vxlan id 7 dev eth0 dstport 8472", false},
		{"vxlan id 7 dev eth0 local 10.5.0.1 dstport 8472", false},
		{"vxlan id 7 dev eth0 local 10.5.0.2 dstport 8472", true},
		{"vxlan id 8 dev eth0 local 10.5.0.1 dstport 8472", true},
		{"bridge", true},
	} {
		hosttest.Shell(t, "ip link add vx address 0a:00:00:00:00:09 type "+c.link)
		must.NoError(t, links.AddVxlan(vxlan))
		if replaced := find(t, "vx").MAC == vxlan.MAC; replaced != c.replaced {
			t.Errorf("%s: replaced: %t", c.link, replaced)
		}
		hosttest.Shell(t, "ip link del vx")
	}
}

func TestPermanentNeighbours(t *testing.T) {
	within(t)
	vxlan := links.Vxlan{Name: "vx", ID: 7, Local: netip.MustParseAddr("10.5.0.1"), MAC: "0a:00:00:00:00:01"}
	must.NoError(t, links.AddVxlan(vxlan))
	hosttest.Shell(t, `ip link set vx up
		ip neigh add 10.1.2.0 lladdr 0a:00:00:00:00:02 dev vx nud permanent
		ip neigh add 10.1.3.0 lladdr 0a:00:00:00:00:03 dev vx nud stale
		bridge fdb add 0a:00:00:00:00:02 dev vx dst 10.5.0.2 self permanent`)
	got, err := links.PermanentNeighbours("vx")
	must.NoError(t, err)
	if want := map[netip.Addr]string{netip.MustParseAddr("10.1.2.0"): "0a:00:00:00:00:02"}; !maps.Equal(got.MACs,
		want) {
		t.Errorf("MAC addresses %v, want %v", got.MACs, want)
	}
	if want := map[string]netip.Addr{"0a:00:00:00:00:02": netip.MustParseAddr("10.5.0.2")}; !maps.Equal(got.Hosts,
		want) {
		t.Errorf("hosts %v, want %v", got.Hosts, want)
	}
}
