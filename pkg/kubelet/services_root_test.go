//go:build root

package kubelet

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// noWayOut is a host with an address and no default route, on which a Service
// leads to a server of its own.
const noWayOut = `set -e
ip link set lo up
ip link add eth7 type veth peer name eth8 && ip link set eth8 up && ip addr add 10.99.0.2/24 dev eth7 && ip link set eth7 up
iptables -w -t nat -A OUTPUT -d 10.96.0.1/32 -p tcp --dport 443 -j DNAT --to-destination 10.99.0.2:6443`

func TestServicesAreReachedWithoutADefaultRoute(t *testing.T) {
	alone(t)
	sh(t, noWayOut)
	server, err := net.Listen("tcp", "10.99.0.2:6443")
	must.NoError(t, err)
	defer server.Close()
	r := serviceRoute(t)
	if _, err := net.DialTimeout("tcp", "10.96.0.1:443", time.Second); err == nil {
		t.Fatal("the Service was reached without a route: this test proves nothing")
	}
	files := world(t, r.Files)
	hosttest.Contract(t, func() string { return files() + sh(t, "ip route") }, r.Step())

	must.NoError(t, r.Step().Apply(t.Context()))
	sh(t, "ip route del 10.96.0.0/16") // as a reboot does
	must.NoError(t, r.Restore())
	conn, err := net.DialTimeout("tcp", "10.96.0.1:443", time.Second)
	must.NoError(t, err)
	conn.Close()
}

func TestServicesAreNotRoutedBesideADefaultRoute(t *testing.T) {
	alone(t)
	sh(t, noWayOut+"\nip route add default via 10.99.0.1")
	diff, err := serviceRoute(t).Step().Check(t.Context())
	if err != nil || len(diff) > 0 {
		t.Errorf("with a default route: %v, %v", diff, err)
	}
}

func serviceRoute(t *testing.T) ServiceRoute {
	t.Helper()
	return ServiceRoute{Files: fresh(t, false).Files, Services: netip.MustParsePrefix("10.96.0.0/16"), NodeIP: netip.MustParseAddr("10.99.0.2")}
}

func sh(t *testing.T, script string) string {
	t.Helper()
	out, err := host.Run(t.Context(), "sh", "-c", script)
	must.NoError(t, err)
	return strings.TrimSpace(out)
}

// TestTheRecordOfARouteThatStays tells the next run which route it must delete.
func TestTheRecordOfARouteThatStays(t *testing.T) {
	alone(t)
	r := serviceRoute(t)
	must.NoError(t, r.Files.MkdirAll(routeRecord.Path)) // it cannot be read
	if err := r.remove(); err == nil || !r.Files.Exists(routeRecord.Path) {
		t.Errorf("the record was removed, %v", err)
	}
}
