package snapshot

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestASnapshotThatCannotBeRestored is refused before any host is removed: this cluster has no engine
// that a step could use.
func TestASnapshotThatCannotBeRestored(t *testing.T) {
	s := noted(t)
	must.NoError(t, s.Notes().Set(t.Context(), noteKey+"new", `{"format": 2, "snapshot": {"name": "new"}}`))
	for name, want := range map[string][2]string{
		"new":  {"snapshot-version", "is of form 2, this program knows 1"},
		"none": {"snapshot-missing", "use one of a, b, new"},
	} {
		err := Restore(t.Context(), testhost.Setup{Cluster: containers.Cluster{Session: s}}, name)
		found := step.Problems(err)
		if len(found) != 1 || found[0].Name != want[0] || !strings.Contains(found[0].Text+found[0].Remedy, want[1]) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if left, err := s.Restoring(t.Context()); err != nil || left != "" {
		t.Errorf("a run restores %s, %v", left, err)
	}
}

// TestTheBeginOfARestore: the next run continues it, and does not continue the removal or the
// first snapshot of the hosts from before.
func TestTheBeginOfARestore(t *testing.T) {
	for name, components := range map[string]string{"a": "{}", "b": ""} {
		s := noted(t)
		for _, key := range []string{session.ComponentsNote, session.FirstNote} {
			must.NoError(t, s.Notes().Set(t.Context(), key, "of before"))
		}
		must.NoError(t, s.WriteRecord(t.Context(), &session.Record{Phase: session.Removing}))
		c, err := contentsNamed(t.Context(), s, name)
		must.NoError(t, err)
		must.NoError(t, restoring{testhost.Setup{Cluster: containers.Cluster{Session: s}}, c}.begin(t.Context()))
		notes, err := s.Notes().All(t.Context())
		must.NoError(t, err)
		if notes[session.RestoringNote] != name || notes[session.ComponentsNote] != components ||
			notes[session.FirstNote] != "" || notes[session.RecordNote] != "" {
			t.Errorf("%s: notes %v", name, notes)
		}
	}
}

// TestThePartsOfASnapshot: all hosts share one volume, which is not part of it.
func TestThePartsOfASnapshot(t *testing.T) {
	own := map[string]string{"/var/lib/docker": "k-master-1.docker", "/srv/shared": "k-shared"}
	c := contents{
		Snapshot: Snapshot{
			Name: "used",
		}, Machines: []machines.Definition{{Name: "k-master-1", Cluster: "k", Volumes: own}},
	}
	got := c.parts()
	slices.Sort(got)
	want := []string{"k-master-1.docker.snapshot.used", "kube-bootstrap/snapshot:k-master-1.used"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsLostWithSnapshots(t *testing.T) {
	got, err := Losses(t.Context(), noted(t), func(name string) bool { return name != "a" })
	if want := []string{"snapshot b of 2026-11-20 10:00:00"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
