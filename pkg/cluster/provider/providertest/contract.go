package providertest

import (
	"maps"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Contract tests the notes of a provider. Every provider passes the same tests.
func Contract(t *testing.T, p provider.Provider, cluster string) {
	t.Helper()
	ctx, notes := t.Context(), p.Notes(cluster)
	has := func(want map[string]string) {
		t.Helper()
		if all, err := notes.All(ctx); err != nil || !maps.Equal(all, want) {
			t.Errorf("notes %v, %v, want %v", all, err, want)
		}
	}
	exists := func(want bool) {
		t.Helper()
		if there, err := p.Exists(ctx, cluster); err != nil || there != want {
			t.Errorf("exists %t, %v, want %t", there, err, want)
		}
	}
	has(map[string]string{})
	exists(false)
	must.NoError(t, notes.Forget(ctx, "a"))
	must.NoError(t, notes.Set(ctx, "a", `{"text": "one"}`))
	must.NoError(t, notes.Set(ctx, "b", "two"))
	must.NoError(t, notes.Set(ctx, "a", "three"))
	has(map[string]string{"a": "three", "b": "two"})
	exists(true)
	if all, err := p.Notes(cluster + "-other").All(ctx); err != nil || len(all) > 0 {
		t.Errorf("another cluster has the notes %v, %v", all, err)
	}
	must.NoError(t, notes.Forget(ctx, "a"))
	has(map[string]string{"b": "two"})
	must.NoError(t, notes.Forget(ctx, "b"))
	has(map[string]string{})
}
