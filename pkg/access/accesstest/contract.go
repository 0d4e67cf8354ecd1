// Package accesstest is the contract of the access to a node: every kind of node passes the same tests.
package accesstest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Node tests the access to a node of this name, which has a shell and the GNU core utilities. missing is
// the access to a node that does not exist.
func Node(t *testing.T, name string, node, missing access.Connection) {
	t.Run("a command has its input and environment, and its output is kept apart",
		func(t *testing.T) { streams(t, node) })
	t.Run("a command that fails is an ExitError", func(t *testing.T) { fails(t, name, node) })
	t.Run("a command whose context ends does not go on", func(t *testing.T) { ends(t, node) })
	t.Run("a file arrives with its mode, and replaces the former one", func(t *testing.T) { files(t, node) })
	t.Run("a missing file and a missing node have errors of their own", func(t *testing.T) { absent(t, node, missing) })
}

func streams(t *testing.T, node access.Connection) {
	var out, errs strings.Builder
	must.NoError(t, node.Exec(t.Context(), host.Command{
		Args: access.Script(`cat; echo "$A $1"; echo aside >&2`, "two words"), Env: []string{"A=1"},
		Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs,
	}))
	if out.String() != "in\n1 two words\n" || errs.String() != "aside\n" {
		t.Errorf("output %q, errors %q", out.String(), errs.String())
	}
}

func fails(t *testing.T, name string, node access.Connection) {
	out, err := access.Output(t.Context(), node, access.Script("echo printed; echo the reason >&2; exit 7")...)
	exit, ok := errors.AsType[*access.ExitError](err)
	if !ok || exit.Node != name || exit.Code != 7 || out != "printed\n" ||
		!strings.Contains(err.Error(), "the reason") {
		t.Errorf("output %q, %v", out, err)
	}
}

func ends(t *testing.T, node access.Connection) {
	ctx, cancel := context.WithCancel(t.Context())
	err := node.Exec(ctx, host.Command{Args: access.Script("echo begun; exec sleep 600"), Stdout: cancels(cancel)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// cancels is a writer that ends a context.
type cancels func()

func (c cancels) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}

func files(t *testing.T, node access.Connection) {
	const path = "/var/access-test/new/file"
	for _, content := range []string{"a longer text", "text"} {
		must.NoError(t, node.Put(t.Context(), path, 0o640, strings.NewReader(content)))
		file, err := node.Get(t.Context(), path)
		must.NoError(t, err)
		got, err := io.ReadAll(file)
		if err = errors.Join(err, file.Close()); err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	mode, err := access.Output(t.Context(), node, "stat", "-c", "%a %u", path)
	if err != nil || mode != "640 0\n" {
		t.Errorf("mode and owner %q, %v", mode, err)
	}
	left, err := access.Output(t.Context(), node, "ls", "/var/access-test/new")
	if err != nil || left != "file\n" {
		t.Errorf("beside the file: %q, %v", left, err)
	}
}

func absent(t *testing.T, node, missing access.Connection) {
	if _, err := node.Get(t.Context(), "/no/such/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := access.Run(t.Context(), missing, "true"); !errdefs.IsNotFound(err) {
		t.Errorf("a missing node: %v", err)
	}
}
