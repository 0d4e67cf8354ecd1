//go:build root

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const worker = "k-worker-1"

// programPath is the path of kube-bootstrap on a node.
var programPath = providertest.Directories{}.ProgramPath()

// clusterOf returns a cluster of one worker, with its root directory, and the events of its session.
func clusterOf(
	t *testing.T,
) (s *session.Session, d providertest.Directories, root string, events *[]session.HostEvent) {
	t.Helper()
	d, events = providertest.New(t), new([]session.HostEvent)
	root = d.Add(t, "k", topology.ClusterNode{Name: worker, Role: topology.Worker})
	s, err := session.Open(session.Selection{Name: "k", Provider: d, CacheDir: t.TempDir()},
		func(e session.HostEvent) { *events = append(*events, e) })
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, s.Close()) })
	return s, d, root, events
}

// install writes a script in place of the kube-bootstrap of a node.
func install(t *testing.T, root, script string) {
	t.Helper()
	path := must.Write(t, filepath.Join(root, programPath), "#!/bin/sh\n"+script)
	must.NoError(t, os.Chmod(path, 0o755))
}

func TestEventsOfANodeHaveItsName(t *testing.T) {
	s, _, root, events := clusterOf(t)
	install(t, root, `echo "{\"step\": \"$* of $A\", \"kind\": \"done\"}" >&2`)
	must.NoError(t, Run(t.Context(), s, worker, []string{"worker", "--join"}, []string{"A=b"}))
	if all := *events; len(all) != 1 || all[0].Host != worker || all[0].Step != "worker --join --progress json of b" ||
		all[0].Kind != step.Done {
		t.Errorf("events %+v", all)
	}
}

func TestAFailureOfANodeIsItsOwnError(t *testing.T) {
	s, _, root, _ := clusterOf(t)
	install(t, root, `echo '{"step": "start etcd", "kind": "failed", "error": "no lease"}' >&2; exit 1`)
	if err := Run(t.Context(), s, worker, []string{"worker"}, nil); err == nil || err.Error() != worker+": no lease" {
		t.Errorf("got %v", err)
	}
}

// TestABusyNodeIsAskedAgain: a run that a killed `cluster up` has left goes on there.
func TestABusyNodeIsAskedAgain(t *testing.T) {
	s, _, root, _ := clusterOf(t)
	install(t, root, fmt.Sprintf("[ -e /second ] || { >/second; exit %d; }", busy))
	must.NoError(t, Run(t.Context(), s, worker, nil, nil))
	install(t, root, fmt.Sprintf("exit %d", busy))
	if err := Run(step.WithLimit(t.Context(), 500*time.Millisecond), s, worker, nil, nil); err == nil {
		t.Error("a node that stays busy is no error")
	}
}

// TestPutIsDoneOnce: a file with the same content is not sent again. Before the stage that creates a
// node, it does not exist.
func TestPutIsDoneOnce(t *testing.T) {
	s, d, root, _ := clusterOf(t)
	from := must.Write(t, filepath.Join(t.TempDir(), "program"), "one")
	put := PutBinary(s, worker, from)
	for _, content := range []string{"one", "another"} {
		must.Write(t, from, content)
		if diff, err := put.Check(t.Context()); err != nil || len(diff) != 1 {
			t.Errorf("before: %v, %v", diff, err)
		}
		must.NoError(t, put.Apply(t.Context()))
		if diff, err := put.Check(t.Context()); err != nil || len(diff) > 0 {
			t.Errorf("after: %v, %v", diff, err)
		}
		info, err := os.Stat(filepath.Join(root, programPath))
		if must.NoError(t, err); string(must.Read(t, filepath.Join(root, programPath))) != content ||
			info.Mode() != 0o755 {
			t.Errorf("the node has another file, with the mode %v", info.Mode())
		}
	}
	later := PutBinary(s, "k-worker-2", from)
	if diff, err := later.Check(t.Context()); err != nil || len(diff) != 1 {
		t.Errorf("a node that does not exist: %v, %v", diff, err)
	}
	d.Set(t, "k", topology.NodeState{ClusterNode: topology.ClusterNode{Name: worker}, State: "off"})
	if _, err := put.Check(t.Context()); err == nil {
		t.Error("a node that is off is no error")
	}
}

func TestTheStatusOfEachNode(t *testing.T) {
	s, d, root, _ := clusterOf(t)
	install(t, root, `[ "$*" = "status -o json" ] && echo '{"upToDate": true}'; exit 5`)
	install(t, d.Add(t, "k", topology.ClusterNode{Name: "k-broken", Role: topology.Worker}), "echo damaged >&2; exit 1")
	d.Add(t, "k", topology.ClusterNode{Name: "k-bare", Role: topology.Bare})
	d.Set(t, "k", topology.NodeState{
		ClusterNode: topology.ClusterNode{Name: "k-off", Role: topology.Worker}, State: "off",
	})
	state, err := s.Observe(t.Context())
	must.NoError(t, err)
	var got []string
	for _, one := range Statuses(t.Context(), s, state.Nodes()) {
		report, err := one.Read()
		got = append(got, fmt.Sprintf("%s %s %t %t %t", one.Name, one.State, err == nil, report.UpToDate,
			strings.Contains(one.Error, "damaged")))
	}
	want := []string{"k-bare running false false false", "k-broken running false false true",
		"k-off off false false false", worker + " running true true false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
