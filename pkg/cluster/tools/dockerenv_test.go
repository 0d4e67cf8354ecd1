package tools

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func portAt(name, addr string) dockerTLS {
	return dockerTLS{node: topology.Node{Name: name, Addr: netip.MustParseAddr(addr)}}
}

func TestANodeWithoutARouteIsNamedWithItsAddress(t *testing.T) {
	err := portAt("k-worker-1", "224.0.0.1").reachable(t.Context()) // no TCP to a group
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "node-unreachable" || !strings.Contains(err.Error(), "224.0.0.1:2376") {
		t.Errorf("got %v", err)
	}
	if err := portAt("", "127.0.0.1").reachable(t.Context()); err != nil { // nobody listens
		t.Error(err)
	}
}
