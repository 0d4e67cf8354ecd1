package flannel

import (
	"net/netip"
	"testing"
)

// good is a file with a lease, as flanneld writes it.
const good = "FLANNEL_NETWORK=10.1.0.0/16\nFLANNEL_SUBNET=10.1.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"

func TestLeaseKey(t *testing.T) {
	if key := LeaseKey(netip.MustParsePrefix("10.1.3.1/24")); key != "/coreos.com/network/subnets/10.1.3.0-24" {
		t.Errorf("key %s", key)
	}
}
