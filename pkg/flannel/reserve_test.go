package flannel

import (
	"net/netip"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestEveryHostGetsItsOwnSubnet reserves all subnets of a network. The first subnet
// is never reserved, nor a leased subnet.
func TestEveryHostGetsItsOwnSubnet(t *testing.T) {
	n := NetworkConfig{CIDR: netip.MustParsePrefix("10.1.0.0/21")}
	leased := []hostLease{leaseOf("10.1.3.0/24", "192.0.2.1", "vxlan", "")}
	var reserved []*mvccpb.KeyValue
	seen := map[string]bool{"10.1.0.0/24": true, "10.1.3.0/24": true}
	for range 6 {
		subnet, err := n.pick(reserved, leased)
		if err != nil || seen[subnet.String()] || !n.CIDR.Overlaps(subnet) || subnet.Bits() != 24 {
			t.Fatalf("got %s, %v after %v", subnet, err, seen)
		}
		seen[subnet.String()] = true
		reserved = append(reserved, &mvccpb.KeyValue{
			Key: []byte(reservationOf(subnet)), Value: []byte("host-" + subnet.Addr().String()),
		})
	}
	_, err := n.pick(reserved, leased)
	wantProblem(t, err, "flannel-network-full")
	if got := reservedFor(reserved, "host-10.1.7.0"); got.String() != "10.1.7.0/24" {
		t.Errorf("got %s", got)
	}
	if reservedFor(reserved, "another").IsValid() || n.fits(netip.MustParsePrefix("10.2.1.0/24")) ||
		n.fits(netip.Prefix{}) {
		t.Error("a subnet that is not the host's is accepted")
	}
}
