//go:build root

package docker

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// inContainer starts a container for commands.
func inContainer(t *testing.T, name string) *Engine {
	t.Helper()
	engine, image := emptyImage(t, name)
	must.NoError(t, engine.Run(t.Context(), Container{Name: name, Image: image, Command: []string{"/bin/sleep", "1000"}, Mounts: programs()}))
	return engine
}

// TestStdinThatCannotBeRead: the command sees the end of stdin, as of a shorter file.
func TestStdinThatCannotBeRead(t *testing.T) {
	const name = "kube-bootstrap-test-stdin"
	engine := inContainer(t, name)
	broken := errors.New("the disk is broken")
	for _, want := range []error{broken, nil} {
		var out strings.Builder
		stdin := io.Reader(strings.NewReader("content"))
		if want != nil {
			stdin = io.MultiReader(stdin, iotest.ErrReader(want))
		}
		err := engine.ExecIn(t.Context(), name, host.Command{Args: []string{"cat"}, Stdin: stdin, Stdout: &out})
		if !errors.Is(err, want) || out.String() != "content" {
			t.Errorf("got %v, want %v; output %q", err, want, out.String())
		}
	}
}

// cancels calls a function at the first output.
type cancels func()

func (c cancels) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}

func TestAShellEndsWithItsContext(t *testing.T) {
	const name = "kube-bootstrap-test-shell"
	engine := inContainer(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	stdin, open := io.Pipe()
	defer open.Close()
	shell := host.Shell{Args: []string{"/bin/sh", "-c", "echo ready; exec sleep 1000"}, Input: stdin, Output: cancels(cancel)}
	ended := make(chan error, 1)
	go func() { ended <- engine.ShellIn(ctx, name, shell) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the shell goes on")
	}
}
