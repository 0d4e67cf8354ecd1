package requirements

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestFreeSubnet: the default network is taken by another cluster, and half of the
// next by a route. Runs at the same time get different networks.
func TestFreeSubnet(t *testing.T) {
	networks := []docker.Network{{Name: "kube", Subnets: []netip.Prefix{netip.MustParsePrefix("10.192.0.0/16")}}}
	all := ofDocker(networks)
	all = append(all, ofRoutes([]links.Route{
		{Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "eth0"},
		{Dst: netip.MustParsePrefix("10.192.0.0/16"), Link: "br-1"},
		{Dst: netip.MustParsePrefix("10.193.128.0/17"), Link: "wg0"},
	}, all)...)
	if want := []neighbour{
		{netip.MustParsePrefix("10.192.0.0/16"), "Docker network kube"},
		{netip.MustParsePrefix("10.193.128.0/17"), "the route over wg0"},
	}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	dir := t.TempDir()
	first := mustReserve(t, dir, all, "10.194.0.0/16")
	second := mustReserve(t, dir, all, "10.195.0.0/16")
	first()
	mustReserve(t, dir, all, "10.194.0.0/16")()
	second()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	all = append(all, neighbour{netip.MustParsePrefix("10.0.0.0/8"), "the route over tun0"})
	if free, _, err := reserved(t.Context(), dir, freeSubnets(all)); len(step.Problems(err)) != 1 {
		t.Errorf("got %s and %v, although all networks are taken", free, err)
	}
}

// mustReserve reserves a network as a run does that has not created its network yet.
func mustReserve(t *testing.T, dir string, all []neighbour, want string) (release func()) {
	t.Helper()
	free, release, err := reserved(t.Context(), dir, freeSubnets(all))
	must.NoError(t, err)
	if free.String() != want {
		t.Errorf("got %s, want %s", free, want)
	}
	return release
}
