package netfilter

import (
	"testing"
)

// TestTablesOfIptables: only tables that iptables creates are removed, and only
// their chains.
func TestTablesOfIptables(t *testing.T) {
	for name, want := range map[string]bool{
		"ip filter": true, "ip6 nat": true, "ip filter INPUT": true, "ip6 raw PREROUTING": true,
		"inet filter": false, "inet filter input": false, "ip kube-proxy": false, "ip kube-proxy filter": false,
		"ip": false, "": false,
	} {
		if OfIptables(name) != want {
			t.Errorf("%q: got %t", name, !want)
		}
	}
}
