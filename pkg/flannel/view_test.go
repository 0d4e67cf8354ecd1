package flannel

import (
	"net/netip"
	"strings"
	"testing"
)

func leaseOf(subnet, host, backend, mac string) hostLease {
	p := netip.MustParsePrefix(subnet)
	return hostLease{subnetsKey + strings.ReplaceAll(subnet, "/", "-"), p, netip.MustParseAddr(host), backend, mac, ""}
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
