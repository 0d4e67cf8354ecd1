package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider/providertest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
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

func TestAFileIsCopiedToANodeAndBack(t *testing.T) {
	options, _, root := oneNode(t)
	dir := t.TempDir()
	from := must.Write(t, filepath.Join(dir, "app.yaml"), "kind: Pod")
	must.NoError(t, os.Chmod(from, 0o640))
	must.NoError(t, os.MkdirAll(filepath.Join(root, "srv"), 0o755))
	for _, to := range []string{"other.yaml", "", "/srv", "/srv/new/"} {
		must.NoError(t, Copy(t.Context(), options, Place{Path: from}, Place{"worker-1", to}))
	}
	for _, path := range []string{"root/other.yaml", "root/app.yaml", "srv/app.yaml", "srv/new/app.yaml"} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.Mode() != 0o640 || string(must.Read(t, filepath.Join(root, path))) != "kind: Pod" {
			t.Errorf("%s: %v", path, err)
		}
	}
	back := filepath.Join(dir, "back")
	must.NoError(t, Copy(t.Context(), options, Place{"worker-1", "app.yaml"}, Place{Path: back}))
	if info, err := os.Stat(back); err != nil || info.Mode() != 0o640 || string(must.Read(t, back)) != "kind: Pod" {
		t.Errorf("the copy from the node: %v", err)
	}
}

func TestOnlyFilesAreCopied(t *testing.T) {
	options, _, _ := oneNode(t)
	for what, err := range map[string]error{
		"to":   Copy(t.Context(), options, Place{Path: t.TempDir()}, Place{"worker-1", "x"}),
		"from": Copy(t.Context(), options, Place{"worker-1", "/usr"}, Place{Path: t.TempDir()}),
	} {
		if found := step.Problems(err); len(found) != 1 || found[0].Name != "copy-file" {
			t.Errorf("%s: %v", what, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "file")
	if err := Copy(t.Context(), options, Place{"worker-1", "none"}, Place{Path: missing}); err == nil ||
		session.FileExists(missing) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestACommandOfAUserHasItsStatus(t *testing.T) {
	options, _, _ := oneNode(t)
	var out bytes.Buffer
	err := RunOn(t.Context(), options, "worker-1", host.Command{
		Args: []string{"/bin/sh", "-c", "cat; exit 3"}, Stdin: strings.NewReader("in"), Stdout: &out, Stderr: io.Discard,
	})
	if exit, ok := errors.AsType[*access.ExitError](err); !ok || exit.Code != 3 || out.String() != "in" {
		t.Errorf("output %q, %v", out.String(), err)
	}
}

// TestADumpHasTheConsole: the nodes have no Docker, so most of a dump is missing, and the dump says so.
func TestADumpHasTheConsole(t *testing.T) {
	options, d, root := oneNode(t)
	d.Set(t, "k", topology.NodeState{ClusterNode: topology.ClusterNode{Name: "k-off", Role: topology.Worker}, State: "off"})
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
		return session.Do(t.Context(), options, session.Requirements{}, func(s *session.Session, state topology.State) error {
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
