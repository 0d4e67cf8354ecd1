package requirements

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestBalanced(t *testing.T) {
	nodes := topology.Request{ControlPlanes: 1, Workers: 2,
		Subnet: netip.MustParsePrefix("10.192.0.0/24")}.Topology("k", topology.State{})
	for text, want := range map[string]string{
		"10.192.0.192-10.192.0.254": "",
		"10.192.0.9-10.192.0.9":     "has the address of the API server, 10.192.0.9",
		"10.192.0.8-10.192.0.8":     "has the address of the local registry, 10.192.0.8",
		"10.192.0.11-10.192.0.20":   "has the address of node k-worker-2, 10.192.0.11",
		"10.192.0.12-10.192.0.20":   "",
	} {
		r, err := addresses.Parse(text)
		must.NoError(t, err)
		got := ""
		if err := Balanced(nodes, []addresses.Range{r}); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
