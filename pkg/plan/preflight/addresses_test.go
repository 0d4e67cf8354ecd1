package preflight

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestBalancedProblems(t *testing.T) {
	taken := []takenRange{
		{"of eth0 of this host", linkRange("eth0", netip.MustParsePrefix("192.168.1.5/24"))},
		{"of docker0 of this host", linkRange("docker0", netip.MustParsePrefix("172.17.0.1/16"))},
	}
	for in, want := range map[string]string{
		"192.168.1.240-192.168.1.250": "",
		"192.168.1.4-192.168.1.6":     "loadBalancerAddresses: 192.168.1.4-192.168.1.6 has an address of eth0 of this host: 192.168.1.5",
		"172.17.9.0/24":               "loadBalancerAddresses: 172.17.9.0-172.17.9.255 has an address of docker0 of this host: 172.17.0.0-172.17.255.255",
	} {
		r, err := addresses.Parse(in)
		must.NoError(t, err)
		got := ""
		for _, p := range balancedProblems([]addresses.Range{r}, taken) {
			got += p.(*step.Problem).Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
