//go:build root

package providertest

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access/accesstest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

func TestADirectoryIsANode(t *testing.T) {
	d := New(t)
	d.Add(t, "k", topology.ClusterNode{Name: "k-worker-1", Role: topology.Worker})
	accesstest.Node(t, "k-worker-1", d.Node("k-worker-1"), d.Node("k-worker-2"))
}
