//go:build root

package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAClusterOnAnotherEngine: the local files have only the name of the cluster.
func TestAClusterOnAnotherEngine(t *testing.T) {
	c, options, _ := noHosts(t)
	ctx := t.Context()
	must.NoError(t, c.NoteEngine(ctx))
	noted := filepath.Join(c.Session.PrivateDir(), "engine.json")
	own := string(must.Read(t, noted))
	shared := must.Write(t, filepath.Join(c.Session.SharedDir(), "bundle"), "of the first engine")
	must.Write(t, noted, `{"address": "ssh://board", "id": "another"}`)
	_, losses := CleanLosses(ctx, options)
	for verb, err := range map[string]error{
		"up": Up(ctx, options, nil), "preflight": Preflight(ctx, options), "clean": Clean(ctx, options),
		"losses": losses,
	} {
		if found := step.Problems(err); len(found) != 1 || found[0].Name != "cluster-engine" ||
			!strings.Contains(err.Error(), "ssh://board") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := List(ctx, options.Selection); err != nil || !session.FileExists(shared) {
		t.Errorf("list: %v; or a file of the other cluster is gone", err)
	}
	must.Write(t, noted, strings.Replace(own, c.Engine.Address, "tcp://an-alias", 1))
	if err := Clean(ctx, options); err != nil || session.FileExists(shared) ||
		session.FileExists(c.Session.PrivateDir()) {
		t.Errorf("another address of the same engine: %v", err)
	}
}

// TestAFailedRunForgetsTheEngine, so that the next run may use another one.
func TestAFailedRunForgetsTheEngine(t *testing.T) {
	c, _, _ := noHosts(t)
	must.NoError(t, c.NoteEngine(t.Context()))
	must.NoError(t, removeBegun(t.Context(), c))
	if there, err := c.Session.Exists(t.Context()); err != nil || there {
		t.Errorf("something is left: %v", err)
	}
}

// TestACleanThatFailsCanRunAgain: without the note in PrivateDir, the user's kubeconfig
// would keep the entries of the cluster.
func TestACleanThatFailsCanRunAgain(t *testing.T) {
	c, options, _ := noHosts(t)
	note := must.Write(t, filepath.Join(c.Session.PrivateDir(), "kubeconfig.json"), "{")
	if err := Clean(t.Context(), options); err == nil || !session.FileExists(note) {
		t.Fatalf("the note is gone, %v", err)
	}
	must.Write(t, note, `{"path": "/no/such/file"}`)
	if err := Clean(t.Context(), options); err != nil || session.FileExists(c.Session.PrivateDir()) {
		t.Errorf("again: %v", err)
	}
}
