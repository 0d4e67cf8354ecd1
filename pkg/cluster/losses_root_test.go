//go:build root

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestLosses has a cluster of two snapshots, whose hosts are gone.
func TestLosses(t *testing.T) {
	c, options, record := noHosts(t)
	const first, used = "snapshot first of 2026-11-20 10:00:00", "snapshot used of 2026-11-21 11:30:00"
	if err := errors.Join(c.Session.WriteRecord(t.Context(), &record),
		c.Session.Notes().Set(t.Context(), "snapshot.used",
			`{"snapshot":{"name":"used","made":"2026-11-21T11:30:00Z"}}`),
		c.Session.Notes().Set(t.Context(), "snapshot.first",
			`{"snapshot":{"name":"first","made":"2026-11-20T10:00:00Z"}}`)); err != nil {
		t.Fatal(err)
	}
	one := func(name string) func(context.Context, Options) ([]string, error) {
		return func(ctx context.Context, o Options) ([]string, error) {
			return snapshot.RemoveLosses(ctx, o.Selection, name)
		}
	}
	for verb, test := range map[string]struct {
		losses func(context.Context, Options) ([]string, error)
		want   []string
	}{
		"clean":    {CleanLosses, []string{first, used}},
		"recreate": {RecreateLosses, []string{first}},
		"remove":   {one("used"), []string{used}},
	} {
		if got, err := test.losses(t.Context(), options); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v, want %q", verb, got, err, test.want)
		}
	}
	_, err := snapshot.RemoveLosses(t.Context(), options.Selection, "none")
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "snapshot-missing" {
		t.Errorf("a snapshot that does not exist: %v", err)
	}
}
