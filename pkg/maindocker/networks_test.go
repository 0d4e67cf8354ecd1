package maindocker

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPools: after a reload, Docker 28.5 does not know the user's pools, from which it takes networks nevertheless.
func TestPools(t *testing.T) {
	h, d := startedHost(t, "systemd", false)
	write(t, d.Files, `{"default-address-pools": [{"base": "10.99.0.0/16", "size": 24}, {"base": "fd00::/48", "size": 64}]}`)
	answer := func(base string) map[string]any {
		return map[string]any{"DefaultAddressPools": []map[string]any{{"Base": base, "Size": 24}}}
	}
	for name, c := range map[string]struct {
		info map[string]any
		want []string
	}{
		"of the engine":  {answer("10.98.0.0/16"), []string{"10.98.0.0/16"}},
		"after a reload": {answer("invalid Prefix"), []string{"10.99.0.0/16", "fd00::/48"}},
		"none": {nil, []string{
			"172.17.0.0/16", "172.18.0.0/15", "172.20.0.0/14", "172.24.0.0/13", "192.168.0.0/16",
		}},
	} {
		h.info = c.info
		got, err := poolsOf(t.Context(), d.Files, d.Engine())
		must.NoError(t, err)
		var want []netip.Prefix
		for _, p := range c.want {
			want = append(want, netip.MustParsePrefix(p))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
