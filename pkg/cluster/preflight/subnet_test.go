package preflight

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
)

// TestFreeSubnet: the default network is taken by another cluster, and half of the
// next by a route.
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
	if free, found := freeSubnet(all); !found || free.String() != "10.194.0.0/16" {
		t.Errorf("got %s, %t", free, found)
	}
	all = append(all, neighbour{netip.MustParsePrefix("10.0.0.0/8"), "the route over tun0"})
	if free, found := freeSubnet(all); found {
		t.Errorf("got %s, although all networks are taken", free)
	}
}
