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

func leaseOf(subnet, host, backend, mac string) hostLease {
	p := netip.MustParsePrefix(subnet)
	return hostLease{subnetsKey + strings.ReplaceAll(subnet, "/", "-"), p, netip.MustParseAddr(host), backend, mac, ""}
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
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 "+
		"dev eth0\nip link set eth0 up\nip route add default dev eth0")
	for _, c := range []struct{ do, want string }{
		{"true", ""},
		{"ip route flush dev flannel.1", "route 10.1.9.0/24 to 192.0.2.2"},
		{"ip route add blackhole 10.1.9.0/25", "route 10.1.9.0/24 to 192.0.2.2"},
		{"ip neigh flush nud permanent dev flannel.1",
			"add 0a:4b:c0:00:02:02 at 192.0.2.2 as a neighbour of flannel.1"},
		{"bridge fdb del 0a:4b:c0:00:02:02 dev flannel.1 dst 192.0.2.2",
			"add 0a:4b:c0:00:02:02 at 192.0.2.2 as a neighbour of flannel.1"},
		{"ip route add 10.1.8.0/24 via 10.1.8.0 dev flannel.1 onlink",
			"remove the route to 10.1.8.0/24, which no host has leased"},
		{"ip addr flush dev flannel.1", "give flannel.1 the address 10.1.7.0"},
		{"ip link set flannel.1 down", "set flannel.1 up"},
		{"ip link set flannel.1 address 0a:00:00:00:00:01",
			"give flannel.1 the MAC address 0a:4b:c0:00:02:01 (now 0a:00:00:00:00:01)"},
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
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 "+
		"dev eth0\nip link set eth0 up")
	if err := EnsureVTEP("vxlan", netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	hosttest.Shell(t, vxlanReady+
		"\nip route add 10.1.8.0/24 via 10.1.8.0 dev flannel.1 onlink\nip route add 10.99.0.0/24 dev flannel.1")
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
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 "+
		"dev eth0\nip link set eth0 up\nip link add flannel.1 type vxlan id 1 dev eth0 dstport 8472")
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
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 "+
		"dev eth0\nip link set eth0 up")
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
	hosttest.Shell(t, "ip link add eth0 type veth peer name other\nip link set other up\nip addr add 192.0.2.1/24 "+
		"dev eth0\nip link set eth0 up")
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

const wgKey = "l9/sC+V1BQMyVRcjN3yyV4t0uYtDwKWZlHEzNKZ5D2A="

func TestLeasesAsFlanneldWritesThem(t *testing.T) {
	for value, want := range map[string]string{
		`{"PublicIP":"192.0.2.2","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"0a:4b:c0:00:02:02"}}`: "0a:4b:c0:00:02:02",
		`{"PublicIP":"192.0.2.2","BackendType":"host-gw","BackendData":null}`:                                                    "",
		`{"PublicIP":"192.0.2.2","BackendType":"wireguard","BackendData":{"PublicKey":"` + wgKey +
			`","Port":51820}}`: "",
	} {
		l, err := parseHostLease(subnetsKey+"10.1.9.0-24", []byte(value))
		if err != nil || l.subnet.String() != "10.1.9.0/24" || l.host.String() != "192.0.2.2" || l.mac != want {
			t.Errorf("%s: got %+v, %v", value, l, err)
		}
	}
}

// TestLeasesThatNoHostHasAreSkipped: a worker can write any value to its own lease.
func TestLeasesThatNoHostHasAreSkipped(t *testing.T) {
	const good = `{"PublicIP":"192.0.2.2"}`
	for _, key := range []string{
		"10.1.9.0", "10.1.9.7-24", "10.1.9.0-24&fc00:0:0:1::-64", "fc00::-64", "", "10.1.9.0-24/x",
	} {
		if l, err := parseHostLease(subnetsKey+key, []byte(good)); err == nil {
			t.Errorf("the key %s is that of %+v", key, l)
		}
	}
	for _, address := range []string{
		"::1", "fe80::1%eth0", "::ffff:192.0.2.2", "127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0",
		"169.254.1.1", "", "x", "192.0.2.2/24",
	} {
		if l, err := parseHostLease(subnetsKey+"10.1.9.0-24", []byte(`{"PublicIP":"`+address+`"}`)); err == nil {
			t.Errorf("the address %q is read as %s", address, l.host)
		}
	}
	for _, value := range []string{
		"null", "garbage", "[]", `{"PublicIP":"192.0.2.2","PublicIPv6":"fd00::1"}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan"}`,
		// of another host
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"0a:4b:c0:00:02:03"}}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"ff:ff:ff:ff:ff:ff"}}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"x"}}`,
		`{"PublicIP":"192.0.2.2","BackendType":"wireguard"}`,
		`{"PublicIP":"192.0.2.2","BackendType":"wireguard","BackendData":{"PublicKey":"x"}}`,
		// as wgKey
		`{"PublicIP":"192.0.2.2","BackendType":"wireguard","BackendData":{"PublicKey":"` + strings.Replace(wgKey, "A=",
			"B=", 1) + `"}}`,
	} {
		if l, err := parseHostLease(subnetsKey+"10.1.9.0-24", []byte(value)); err == nil {
			t.Errorf("%s is read as %+v", value, l)
		}
	}
}

// TestLeasesThatFlanneldReadsDifferentlyAreSkipped: flanneld cannot use these leases, and
// encoding/json reads the address of a machine in them. The agents of all hosts would restart
// flanneld, which does not set the route.
func TestLeasesThatFlanneldReadsDifferentlyAreSkipped(t *testing.T) {
	const mac = "0a:4b:c0:00:02:02"
	for _, value := range []string{
		`{"PublicIP":"192.0.2.2","PublicIP":null}`,
		`{"PublicIP":"192.0.2.2","publicip":null}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"` + mac + `"},"BackendData":{}}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"` + mac + `"},"BackendData":null}`,
		// the sign of kelvin
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"` + mac + `"},"Bac` +
			"\u212a" + `endData":{}}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"` + mac + `","vtepmac":null}}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VNI":-1,"VtepMAC":"` + mac + `"}}`,
		`{"x":["a","b"],"PublicIP":"192.0.2.2","PublicIP":null}`,
		`{"PublicIP":"192.0.2\u002e2"}`,
		`{"PublicIP":"192.0.2.2","BackendType":"vxlan","BackendData":{"VtepMAC":"0a:4b:c0:00:02:0\u0032"}}`,
	} {
		if l, err := parseHostLease(subnetsKey+"10.1.9.0-24", []byte(value)); err == nil {
			t.Errorf("%s is read as %+v", value, l)
		}
	}
}

// TestAHostHasItsOwnKey: flanneld would take the subnet of a peer away if another host has its key.
func TestAHostHasItsOwnKey(t *testing.T) {
	first, second := leaseOf("10.1.7.0/24", "192.0.2.1", "wireguard", ""),
		leaseOf("10.1.9.0/24", "192.0.2.2", "wireguard", "")
	first.wgKey, second.wgKey = wgKey, wgKey
	if err := second.conflict([]hostLease{first}); err == nil || !strings.Contains(err.Error(), "PublicKey") {
		t.Errorf("the key of another host: %v", err)
	}
	if err := first.conflict([]hostLease{first}); err != nil {
		t.Errorf("its own key: %v", err)
	}
	second.host, second.wgKey = first.host, ""
	if err := second.conflict([]hostLease{first}); err == nil || !strings.Contains(err.Error(), "PublicIP") {
		t.Errorf("the address of another host: %v", err)
	}
}
