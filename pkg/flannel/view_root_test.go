//go:build root

package flannel

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// twoHosts is the overlay as 192.0.2.1 must see it.
func twoHosts(backend string) view {
	return view{
		backend: backend, publicIP: netip.MustParseAddr("192.0.2.1"),
		own: subnet.Lease{Network: netip.MustParsePrefix("10.1.0.0/16"), Subnet: netip.MustParsePrefix("10.1.7.1/24")},
		leases: []hostLease{
			leaseOf("10.1.7.0/24", "192.0.2.1", backend, vtepMAC(netip.MustParseAddr("192.0.2.1"))),
			leaseOf("10.1.9.0/24", "192.0.2.2", backend, vtepMAC(netip.MustParseAddr("192.0.2.2"))),
			leaseOf("10.1.11.0/24", "192.0.2.3", "another", ""),
		},
	}
}

const vxlanReady = `
	ip addr add 10.1.7.0/32 dev flannel.1
	ip link set flannel.1 up
	ip route add 10.1.9.0/24 via 10.1.9.0 dev flannel.1 onlink
	ip neigh add 10.1.9.0 lladdr 0a:4b:c0:00:02:02 dev flannel.1 nud permanent
	bridge fdb add 0a:4b:c0:00:02:02 dev flannel.1 dst 192.0.2.2`

// TestOverlayOfVxlan damages the overlay in each way, and wants it named.
func TestOverlayOfVxlan(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 dev eth0\nip link set eth0 up\nip route add default dev eth0")
	for _, c := range []struct{ do, want string }{
		{"true", ""},
		{"ip route flush dev flannel.1", "route 10.1.9.0/24 to 192.0.2.2"},
		{"ip route add blackhole 10.1.9.0/25", "route 10.1.9.0/24 to 192.0.2.2"},
		{"ip neigh flush nud permanent dev flannel.1", "add 0a:4b:c0:00:02:02 at 192.0.2.2 as a neighbour of flannel.1"},
		{"bridge fdb del 0a:4b:c0:00:02:02 dev flannel.1 dst 192.0.2.2", "add 0a:4b:c0:00:02:02 at 192.0.2.2 as a neighbour of flannel.1"},
		{"ip route add 10.1.8.0/24 via 10.1.8.0 dev flannel.1 onlink", "remove the route to 10.1.8.0/24, which no host has leased"},
		{"ip addr flush dev flannel.1", "give flannel.1 the address 10.1.7.0"},
		{"ip link set flannel.1 down", "set flannel.1 up"},
		{"ip link set flannel.1 address 0a:00:00:00:00:01", "give flannel.1 the MAC address 0a:4b:c0:00:02:01 (now 0a:00:00:00:00:01)"},
		{"ip link del flannel.1", "create the link flannel.1"},
	} {
		for range 2 { // the second finds the link
			if err := EnsureVTEP("vxlan", netip.MustParseAddr("192.0.2.1")); err != nil {
				t.Fatal(err)
			}
		}
		hosttest.Shell(t, vxlanReady)
		hosttest.Shell(t, c.do)
		diff, err := twoHosts("vxlan").diff()
		if err != nil || diff.String() != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.do, diff, err, c.want)
		}
		hosttest.Shell(t, "ip route flush type blackhole")
		if c.do != "ip link del flannel.1" {
			hosttest.Shell(t, "ip link del flannel.1")
		}
	}
}

// Only routes that no lease wants are removed.
func TestRemoveStale(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 dev eth0\nip link set eth0 up")
	if err := EnsureVTEP("vxlan", netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	hosttest.Shell(t, vxlanReady+"\nip route add 10.1.8.0/24 via 10.1.8.0 dev flannel.1 onlink\nip route add 10.99.0.0/24 dev flannel.1")
	if err := twoHosts("vxlan").removeStale(); err != nil {
		t.Fatal(err)
	}
	if diff, err := twoHosts("vxlan").diff(); err != nil || len(diff) > 0 {
		t.Errorf("got %q, %v", diff, err)
	}
	hosttest.Shell(t, "ip route del 10.99.0.0/24 dev flannel.1") // it is not of the overlay
}

// A link that somebody gave another MAC address gets its own back.
func TestEnsureVTEPRestoresTheMACAddress(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 dev eth0\nip link set eth0 up\nip link add flannel.1 type vxlan id 1 dev eth0 dstport 8472")
	if err := EnsureVTEP("vxlan", netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	hosttest.Shell(t, vxlanReady)
	if diff, err := twoHosts("vxlan").diff(); err != nil || len(diff) > 0 {
		t.Errorf("got %q, %v", diff, err)
	}
}

func TestOverlayOfHostGateways(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 dev eth0\nip link set eth0 up")
	const want = "route 10.1.9.0/24 to 192.0.2.2"
	if diff, err := twoHosts("host-gw").diff(); err != nil || diff.String() != want {
		t.Errorf("without a route: %q, %v", diff, err)
	}
	hosttest.Shell(t, "ip route add 10.1.9.0/24 via 192.0.2.3")
	if diff, err := twoHosts("host-gw").diff(); err != nil || diff.String() != want {
		t.Errorf("with a route to another host: %q, %v", diff, err)
	}
	hosttest.Shell(t, "ip route replace 10.1.9.0/24 via 192.0.2.2")
	if diff, err := twoHosts("host-gw").diff(); err != nil || len(diff) > 0 {
		t.Errorf("with its route: %q, %v", diff, err)
	}
}

// TestAGatewayIsInANetworkOfTheOthers: a worker must not lease an address that flanneld cannot use.
func TestAGatewayIsInANetworkOfTheOthers(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 dev eth0\nip link set eth0 up")
	far := leaseOf("10.1.9.0/24", "198.51.100.2", "host-gw", "")
	near, routed := far, far
	near.host, routed.backend = netip.MustParseAddr("192.0.2.2"), "vxlan"
	for _, route := range []string{"true", "ip route add default via 192.0.2.254"} {
		hosttest.Shell(t, route)
		if err := far.routable(); err == nil || !strings.Contains(err.Error(), "198.51.100.2 is in no network") {
			t.Errorf("%s: %v", route, err)
		}
		must.NoError(t, errors.Join(near.routable(), routed.routable()))
	}
}
