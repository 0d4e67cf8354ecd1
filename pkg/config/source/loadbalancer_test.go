package source

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// The addresses of a host are refused, and accepted together with the addon.
func TestLoadBalancerAddressesOfAHost(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.15": "has the ipAddress 10.0.0.15; choose addresses that no machine has", "10.0.0.5": "",
	} {
		cfg, _, err := Load("", hostEnv("KUBE_BOOTSTRAP_ADDONS", extension.AddonMetalLB,
			"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "10.0.0.10-10.0.0.20", "IP_ADDRESS", address), nil)
		must.NoError(t, err)
		text := ""
		if err := cfg.Validate(config.RoleControlPlane).ToAggregate(); err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("%s: got %q, want %q", address, text, want)
		}
	}
}

// A cluster forgets the addresses with the addon that uses them.
func TestAddressesGoWithTheirAddon(t *testing.T) {
	m := made(t, "KUBE_BOOTSTRAP_ADDONS", extension.AddonMetalLB,
		"KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES", "10.0.0.0/24")
	for addons, want := range map[string]string{"": "10.0.0.0/24", extension.AddonLocalPath: ""} {
		var pairs []string
		if addons != "" {
			pairs = []string{"KUBE_BOOTSTRAP_ADDONS", addons}
		}
		cfg, origins, err := Load("", hostEnv(pairs...), nil)
		must.NoError(t, err)
		cfg, _, err = cfg.WithRecord(m, origins)
		must.NoError(t, err)
		setting, _ := config.Find("loadBalancerAddresses")
		if got := setting.Get(cfg); got != want {
			t.Errorf("with addons %q: %q, want %q", addons, got, want)
		}
	}
}
