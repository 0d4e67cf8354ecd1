package tools

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// oneNode returns the options of a cluster of one worker, and its root directory.
func oneNode(t *testing.T) (session.Selection, providertest.Directories, string) {
	t.Helper()
	d := providertest.New(t)
	root := d.Add(t, "k", topology.ClusterNode{Name: "k-worker-1", Role: topology.Worker})
	return session.Selection{Name: "k", Provider: d, CacheDir: t.TempDir()}, d, root
}

// TestADumpHasTheConsole: the nodes have no Docker, so most of a dump is missing, and the dump says so.
func TestADumpHasTheConsole(t *testing.T) {
	options, d, root := oneNode(t)
	d.Set(t, "k", topology.NodeState{
		ClusterNode: topology.ClusterNode{Name: "k-off", Role: topology.Worker}, State: "off",
	})
	must.Write(t, filepath.Join(root, "../console.log"), "booted\n")
	dir := filepath.Join(t.TempDir(), "dump")
	var notes []string
	must.NoError(t, Dump(t.Context(), options, dir, func(e session.HostEvent) {
		if e.Kind == step.Note {
			notes = append(notes, e.Message)
		}
	}))
	if text := string(must.Read(t, filepath.Join(dir, "k-worker-1", "console.log"))); text != "booted\n" {
		t.Errorf("console %q", text)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "k-worker-1: missing or incomplete: ") {
		t.Errorf("notes %q", notes)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "k-off")); err != nil || len(entries) != 1 {
		t.Errorf("a node that is off: %v, %v", entries, err)
	}
}

// TestImagesAreReadOnce, also if every node fails: none has Docker.
func TestImagesAreReadOnce(t *testing.T) {
	options, d, _ := oneNode(t)
	d.Add(t, "k", topology.ClusterNode{Name: "k-worker-2", Role: topology.Worker})
	reads := 0
	source := ImageSource{
		Name: "a test",
		Has:  func(_ context.Context, image string) (bool, error) { return image != "none", nil },
		Save: func(_ context.Context, to io.Writer, images ...string) error {
			reads++
			_, err := io.WriteString(to, strings.Join(images, " "))
			return err
		},
	}
	load := func(images ...string) error {
		return session.Do(t.Context(), options, session.Requirements{},
			func(s *session.Session, state topology.State) error {
				return LoadImage(t.Context(), s, state, source, images)
			})
	}
	if found := step.Problems(load("a", "none")); len(found) != 1 || found[0].Name != "image-missing" || reads > 0 {
		t.Errorf("a missing image: %v, %d reads", found, reads)
	}
	err := load("a", "b")
	for _, name := range []string{"k-worker-1", "k-worker-2"} {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if reads != 1 {
		t.Errorf("%d reads", reads)
	}
}
