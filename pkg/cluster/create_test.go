package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPlansOfACreation: a stage per line. The workers of a new cluster join in the stage of the
// first control plane.
func TestPlansOfACreation(t *testing.T) {
	const adapt = "adapt k-master-1 to the other nodes"
	for name, c := range map[string]struct {
		shared, isNew bool
		disk          testhost.PreparedDisk
		want          []string
	}{
		"prepared disk": {true, true, testhost.PreparedDisk{Key: "a", Volume: "disk"}, []string{
			"copy the prepared disk to 2 hosts, lead to the control planes of k",
			"boot k-master-1, boot k-worker-1, run master on k-master-1, wait until k-master-1 lets hosts join, run " +
				"worker on k-worker-1",
			adapt,
		}},
		"no prepared disk yet": {true, true, testhost.PreparedDisk{Key: "a"}, []string{
			"put kube-bootstrap on k-master-1",
			"load images into k-master-1",
			"copy the disk of k-master-1, lead to the control planes of k",
			"boot k-worker-1, run master on k-master-1, wait until k-master-1 lets hosts join, run worker on k-worker-1",
			adapt,
		}},
		"images are pulled": {false, true, testhost.PreparedDisk{}, []string{
			"put kube-bootstrap on k-master-1, put kube-bootstrap on k-worker-1",
			"lead to the control planes of k",
			"run master on k-master-1, wait until k-master-1 lets hosts join, run worker on k-worker-1",
			adapt,
		}},
		"a cluster that was up": {true, false, testhost.PreparedDisk{}, []string{
			"put kube-bootstrap on k-master-1, put kube-bootstrap on k-worker-1",
			"lead to the control planes of k",
			"load images into k-worker-1, run master on k-master-1",
			"run worker on k-worker-1",
			adapt,
		}},
	} {
		options, err := Options{Selection: session.Selection{Name: "k", Provider: containers.EngineChoice{},
			CacheDir: t.TempDir()}, Request: topology.Request{Workers: 1}}.withDefaults()
		must.NoError(t, err)
		s, err := session.Open(options.Selection, nil)
		must.NoError(t, err)
		defer s.Close()
		cluster, err := containers.Of(s)
		must.NoError(t, err)
		nodes := options.Topology(s.Name, topology.State{})
		run := change{cluster: cluster, options: options, nodes: nodes, source: source{shared: c.shared}}
		join := run.join(nodes.FirstControlPlane(topology.State{}))
		made := creation{
			change: run, join: join, first: join.First, setup: options.setup(cluster, nodes), isNew: c.isNew,
		}
		made.setup.Disk = c.disk
		if c.isNew {
			made.copies = made.likeFirst()
		}
		var got []string
		_, err = step.NewGraph(made.plan()) // without the stage that boots the hosts
		must.NoError(t, err)
		for _, stage := range made.plan().Wanted() {
			var names []string
			for _, s := range stage {
				names = append(names, s.Name)
			}
			got = append(got, strings.Join(names, ", "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
