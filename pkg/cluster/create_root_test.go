//go:build root

package cluster

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestChecksBeforeTheHosts: all Checks of a stage run before its first Apply. They must work
// before that stage has created its hosts.
func TestChecksBeforeTheHosts(t *testing.T) {
	cluster, options, _ := noHosts(t)
	app := must.Write(t, filepath.Join(t.TempDir(), "app.yaml"), "{}")
	options.Manifests = []ManifestFile{{Path: app, On: "/app.yaml"}}
	nodes := options.Topology(cluster.Name, topology.State{})
	run := change{cluster: cluster, options: options, nodes: nodes, source: source{shared: true}}
	join := run.join(nodes.FirstControlPlane(topology.State{}))
	c := creation{change: run, join: join, first: join.First, setup: options.setup(cluster, nodes), isNew: true}
	c.setup.Disk = testhost.PreparedDisk{Key: "a", Volume: "disk"}
	c.copies = c.likeFirst()
	for _, stage := range c.plan() {
		for _, f := range new(step.Runner).Check(t.Context(), step.Plan{stage}) {
			if f.Err != nil {
				t.Error(f.Err)
			}
		}
	}
}
