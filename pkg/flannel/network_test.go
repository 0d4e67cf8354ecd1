package flannel

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestValidate(t *testing.T) {
	network := func(cidr string) netip.Prefix { return netip.MustParsePrefix(cidr) }
	for name, c := range map[string]struct {
		network NetworkConfig
		problem string
	}{
		"the default":               {NetworkConfig{CIDR: network("10.1.0.0/16")}, ""},
		"the smallest for a /24":    {NetworkConfig{CIDR: network("10.1.0.0/22")}, ""},
		"too small for a /24":       {NetworkConfig{CIDR: network("10.1.0.0/23")}, "flannel-network-size"},
		"an address, not a network": {NetworkConfig{CIDR: network("10.1.0.1/16")}, "flannel-network"},
		"IPv6":                      {NetworkConfig{CIDR: network("fd00::/48")}, "flannel-network"},
		"nothing":                   {NetworkConfig{}, "flannel-network"},
		"host-gw":                   {NetworkConfig{CIDR: network("10.1.0.0/16"), Backend: "host-gw"}, ""},
		"unknown backend":           {NetworkConfig{CIDR: network("10.1.0.0/16"), Backend: "gre"}, "flannel-backend"},
	} {
		t.Run(name, func(t *testing.T) { wantProblem(t, c.network.Validate(), c.problem) })
	}
}

func TestUDPIsForAMD64(t *testing.T) {
	wantProblem(t, validateBackend("udp", "amd64"), "")
	wantProblem(t, validateBackend("udp", "arm64"), "flannel-backend-arch")
}

func wantProblem(t *testing.T, err error, name string) {
	t.Helper()
	problems := step.Problems(err)
	switch {
	case name == "" && err != nil:
		t.Errorf("got %v, want no problem", err)
	case name != "" && (len(problems) != 1 || problems[0].Name != name):
		t.Errorf("got %v, want problem %s", err, name)
	}
}

func TestConfigIsFlannels(t *testing.T) {
	n := NetworkConfig{CIDR: netip.MustParsePrefix("10.1.0.0/16")}
	if got, want := n.json(), `{"Network":"10.1.0.0/16","SubnetLen":24,"Backend":{"Type":"vxlan"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	n.Backend = "host-gw"
	if got, want := n.json(), `{"Network":"10.1.0.0/16","SubnetLen":24,"Backend":{"Type":"host-gw"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	spaced, _ := json.MarshalIndent(n.config(), "", "  ")
	if !n.same(string(spaced)) || n.same(`{"Network":"10.2.0.0/16","SubnetLen":24,"Backend":{"Type":"host-gw"}}`) ||
		n.same("") ||
		n.same(`{"Network":"10.1.0.0/16","SubnetLen":24,"Backend":{"Type":"host-gw","MTU":1400}}`) {
		t.Error("same does not compare by meaning")
	}
}
