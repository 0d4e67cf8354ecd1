//go:build root

package links_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// wantRoutes compares the destinations of all routes.
func wantRoutes(t *testing.T, want ...string) {
	t.Helper()
	routes, err := links.Routes()
	must.NoError(t, err)
	var got []string
	for _, r := range routes {
		got = append(got, r.Dst.String()+" "+r.Link)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("routes %q, want %q", got, want)
	}
}

func TestDeleteRoutes(t *testing.T) {
	within(t)
	hosttest.Shell(t, `ip route add default via 10.5.0.2
		ip route add 10.1.3.0/24 via 10.5.0.3
		ip route add 10.1.4.0/24 dev eth0
		ip route add 10.2.0.0/16 via 10.5.0.3`)
	wantRoutes(t, "0.0.0.0/0 eth0", "10.1.3.0/24 eth0", "10.1.4.0/24 eth0", "10.2.0.0/16 eth0", "10.5.0.0/24 eth0")
	must.NoError(t, links.DeleteRoutesVia(netip.MustParsePrefix("10.1.0.0/16")))
	wantRoutes(t, "0.0.0.0/0 eth0", "10.1.4.0/24 eth0", "10.2.0.0/16 eth0", "10.5.0.0/24 eth0")
	for range 2 { // the second time, the route is missing
		must.NoError(t, links.DeleteRoute(links.Route{Dst: netip.MustParsePrefix("10.1.4.0/24"), Link: "eth0"}))
	}
	wantRoutes(t, "0.0.0.0/0 eth0", "10.2.0.0/16 eth0", "10.5.0.0/24 eth0")
}

func TestRouteTo(t *testing.T) {
	within(t)
	hosttest.Shell(t, `ip route add 10.1.3.0/24 via 10.5.0.3
		ip route add unreachable 10.9.0.0/16`)
	names := links.Names{}
	for to, want := range map[string]string{
		"10.5.0.7": "eth0", "10.1.3.4": "eth0 via 10.5.0.3", "10.9.0.1": "", "192.0.2.1": "",
	} {
		link, via, ok, err := names.RouteTo(netip.MustParseAddr(to))
		got := link
		if via.IsValid() {
			got += " via " + via.String()
		}
		if err != nil || ok != (want != "") || got != want {
			t.Errorf("to %s: %q, %v, %v; want %q", to, got, ok, err, want)
		}
	}
}

func TestLocalRoute(t *testing.T) {
	within(t)
	services, addr := netip.MustParsePrefix("10.96.0.0/16"), netip.MustParseAddr("10.96.0.1")
	for range 2 {
		must.NoError(t, links.AddLocalRoute(services, netip.MustParseAddr("10.5.0.1")))
	}
	if link, _, ok, err := (links.Names{}).RouteTo(addr); link != "lo" || !ok || err != nil {
		t.Errorf("a Service is routed to %q, %v, %v", link, ok, err)
	}
	for range 2 {
		must.NoError(t, links.DeleteRoute(links.Route{Dst: services, Link: "lo"}))
	}
	wantRoutes(t, "10.5.0.0/24 eth0")
}
