package snapshot

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// noted returns a cluster whose provider has the notes of two snapshots.
func noted(t *testing.T) *session.Session {
	t.Helper()
	d := providertest.New(t)
	for name, text := range map[string]string{
		"b": `{"snapshot": {"name": "b", "made": "2026-11-20T10:00:00Z", "hosts": ["k-master-1"]}, "settings": {"kubernetes": "v1.37.2"}}`,
		"a": `{"snapshot": {"name": "a", "made": "2026-11-21T11:30:00Z"}, "components": "{}"}`,
	} {
		must.NoError(t, d.Notes("k").Set(t.Context(), noteKey+name, text))
	}
	must.NoError(t, d.Notes("k").Set(t.Context(), "other", "note"))
	s, err := session.Open(session.Selection{Name: "k", Provider: d, CacheDir: t.TempDir()}, nil)
	must.NoError(t, err)
	return s
}

func TestSnapshotsAreListedInTheOrderOfTheirTimes(t *testing.T) {
	s := noted(t)
	var got []string
	all, err := List(t.Context(), s.Selection)
	for _, one := range all {
		got = append(got, fmt.Sprint(one.Name, one.Hosts))
	}
	if want := []string{"b[k-master-1]", "a[]"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if names, err := Names(t.Context(), s); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestWhatSnapshotsContain(t *testing.T) {
	s := noted(t)
	if r, err := Settings(t.Context(), s, "b"); err != nil || r.Version() != "v1.37.2" {
		t.Errorf("settings of b: %+v, %v", r, err)
	}
	if r, err := Settings(t.Context(), s, "a"); err != nil || r != nil {
		t.Errorf("settings of a, whose cluster was not finished: %+v, %v", r, err)
	}
	if all, err := Components(t.Context(), s); err != nil || !slices.Equal(all, []string{"{}"}) {
		t.Errorf("components %q, %v", all, err)
	}
}

func TestSnapshotsAreForgottenBeforeTheirParts(t *testing.T) {
	s := noted(t)
	must.NoError(t, ForgetAll(t.Context(), s))
	if left, err := s.Notes().All(t.Context()); err != nil || len(left) != 1 || left["other"] == "" {
		t.Errorf("notes %v, %v", left, err)
	}
}

func TestADamagedNoteIsNamed(t *testing.T) {
	s := noted(t)
	must.NoError(t, s.Notes().Set(t.Context(), noteKey+"c", "{"))
	if _, err := Names(t.Context(), s); err == nil ||
		err.Error() != "snapshot c of cluster k: unexpected end of JSON input" {
		t.Errorf("got %v", err)
	}
}
