package session_test

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// controlPlane is the first control plane of the cluster k.
var controlPlane = topology.ClusterNode{
	Name: "k-master-1", Role: topology.ControlPlane, Addr: netip.MustParseAddr("10.192.0.2"),
}

func optionsOf(t *testing.T, d providertest.Directories) session.Selection {
	t.Helper()
	return session.Selection{Name: "k", Provider: d, CacheDir: t.TempDir()}
}

func open(t *testing.T, options session.Selection) *session.Session {
	t.Helper()
	s, err := session.Open(options, nil)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, s.Close()) })
	return s
}

// hasProblem fails the test unless err is the problem with this name, whose message has the text.
func hasProblem(t *testing.T, err error, name, text string) {
	t.Helper()
	if found := step.Problems(err); len(found) != 1 || found[0].Name != name ||
		!strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("got %v, want %s with %q", err, name, text)
	}
}

func TestAClusterThatDoesNotExist(t *testing.T) {
	d := providertest.New(t)
	options := optionsOf(t, d)
	do := func() error {
		return session.Do(t.Context(), options, session.Requirements{Needs: session.ACluster},
			func(*session.Session, topology.State) error { return nil })
	}
	hasProblem(t, do(), "cluster-missing", "cluster up --name k`")
	for _, other := range []string{"b", "a"} {
		d.Add(t, other, topology.ClusterNode{Name: other + "-worker-1"})
	}
	hasProblem(t, do(), "cluster-missing", "cluster k does not exist; this engine has a, b [cluster-missing]")
	must.NoError(t, d.Notes("k").Set(t.Context(), "any", "note"))
	must.NoError(t, do())
}

// TestTheCauseOfMissingNodes: each cause has a problem of its own.
func TestTheCauseOfMissingNodes(t *testing.T) {
	for name, c := range map[string]struct {
		notes         map[string]string
		problem, text string
	}{
		"creation": {map[string]string{"other": "note"}, "cluster-unfinished", "creates cluster k has not finished"},
		"restore": {map[string]string{session.RestoringNote: "used"}, "cluster-unfinished",
			"restores snapshot used of cluster k"},
		"removal": {map[string]string{session.RecordNote: `{"phase": "removing"}`}, "cluster-unfinished",
			"removed the hosts of cluster k"},
		"hosts gone": {map[string]string{session.RecordNote: `{}`}, "cluster-hosts",
			"its settings and snapshots are not"},
		"new format": {map[string]string{session.RecordNote: `{"format": 2}`}, "cluster-version", "format 2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := providertest.New(t)
			for key, text := range c.notes {
				must.NoError(t, d.Notes("k").Set(t.Context(), key, text))
			}
			_, _, err := session.Begin(t.Context(), optionsOf(t, d), session.Requirements{Needs: session.Nodes})
			hasProblem(t, err, c.problem, c.text)
		})
	}
}

// TestOneRunAtATime: another command has the lock until it closes its session.
func TestOneRunAtATime(t *testing.T) {
	d := providertest.New(t)
	d.Add(t, "k", controlPlane)
	options, scope := optionsOf(t, d), session.Requirements{Needs: session.Nodes, Lock: session.ClusterLock}
	first, _, err := session.Begin(t.Context(), options, scope)
	must.NoError(t, err)
	if _, _, err := session.Begin(t.Context(), options, scope); !errors.Is(err, host.ErrLocked) {
		t.Errorf("a second run: %v", err)
	}
	other := scope
	other.Lock = session.SuiteLock
	suite, _, err := session.Begin(t.Context(), options, other)
	must.NoError(t, errors.Join(err, suite.Close(), first.Close()))
	again, state, err := session.Begin(t.Context(), options, scope)
	if must.NoError(t, err); !state.Runs(controlPlane.Name) {
		t.Errorf("nodes %v", state.Names())
	}
	must.NoError(t, again.Close())
}

func TestFilesOfAClusterAtAnotherPlace(t *testing.T) {
	d := providertest.New(t)
	d.Add(t, "k", controlPlane)
	options := optionsOf(t, d)
	must.Write(t, filepath.Join(options.PrivateDir(), "place"), "/other")
	_, _, err := session.Begin(t.Context(), options, session.Requirements{})
	hasProblem(t, err, "cluster-place", "cluster k is in /other")
}

func TestACommandOnANodeNeedsItToRun(t *testing.T) {
	d := providertest.New(t)
	d.Add(t, "k", controlPlane)
	options, ran := optionsOf(t, d), ""
	on := func(name string) error {
		return session.OnRunning(t.Context(), options, session.Requirements{Needs: session.Nodes}, name,
			func(_ *session.Session, n topology.ClusterNode) error {
				ran = n.Name
				return nil
			})
	}
	if err := on("master-1"); err != nil || ran != controlPlane.Name {
		t.Errorf("%v, it ran on %q", err, ran)
	}
	hasProblem(t, on("worker-1"), "node-missing", "use one of k-master-1")
	d.Set(t, "k", topology.NodeState{ClusterNode: controlPlane, State: "off"})
	hasProblem(t, on("master-1"), "node-off", "node start k-master-1 --cluster k")
	_, err := open(t, options).RunningControlPlane(t.Context(), "")
	hasProblem(t, err, "cluster-off", "cluster up --name k")
}

func TestTheRecordOfACluster(t *testing.T) {
	s := open(t, optionsOf(t, providertest.New(t)))
	ctx := t.Context()
	if r, err := s.Record(ctx); r != nil || err != nil {
		t.Errorf("no record: %v, %v", r, err)
	}
	record := session.Record{
		Kubernetes: "v1.37.2", Settings: config.ClusterRecord{Given: map[string]string{"flannelBackend": "host-gw"}},
		Nodes: []topology.Spec{{Name: "master-1", Role: topology.ControlPlane},
			{Name: "worker-1", Role: topology.Worker}},
	}
	must.NoError(t, s.WriteRecord(ctx, &record))
	must.NoError(t, s.DropNode(ctx, "k-worker-1"))
	must.NoError(t, s.DropNode(ctx, "k-worker-9"))
	r, err := s.UpRecord(ctx)
	must.NoError(t, err)
	var names []string
	for _, n := range r.Nodes {
		names = append(names, n.Name)
	}
	if r.Version() != "v1.37.2" || r.Settings.Given["flannelBackend"] != "host-gw" ||
		!slices.Equal(names, []string{"master-1"}) {
		t.Errorf("got %+v", r)
	}
	record.Phase = session.Removing
	must.NoError(t, s.WriteRecord(ctx, &record))
	if r, err := s.UpRecord(ctx); r != nil || err != nil {
		t.Errorf("during a removal: %v, %v", r, err)
	}
	must.NoError(t, s.WriteRecord(ctx, nil))
	if r, err := s.Record(ctx); r != nil || err != nil {
		t.Errorf("after its removal: %v, %v", r, err)
	}
}
