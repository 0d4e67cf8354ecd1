//go:build root

package tools

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

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
