package host

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// A program that is left would keep the output open, and Run would wait for it.
func TestAGroupEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := Command{Args: []string{"/bin/sh", "-c", "sleep 600 & sleep 600; true"}, Stdout: io.Discard,
		Group: true}.Run(ctx)
	if took := time.Since(began); err == nil || took > time.Minute {
		t.Errorf("%v after %s", err, took)
	}
}

// Without a group, Run does not wait for a process that its program has started.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the cause")
	stdout, started := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := Command{Args: []string{"/bin/sh", "-c", "sleep 600 & echo $!; wait"}, Stdout: started}.Run(ctx)
		ended <- err
	}()
	line := make([]byte, 16)
	n, err := stdout.Read(line)
	must.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	must.NoError(t, err)
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	cancel(cause)
	select {
	case err := <-ended:
		if !errors.Is(err, cause) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("Run still waits for a process that its program has started")
	}
}

// TestBecomeReplacesVariables: of two equal variables, a program in Go reads the first one.
func TestBecomeReplacesVariables(t *testing.T) {
	const child, variable = "BECOME_TEST_CHILD", "BECOME_TEST_VARIABLE"
	if os.Getenv(child) != "" {
		t.Fatal(Become("/usr/bin/env", []string{"env"}, variable+"=second", variable+"=last"))
	}
	out, err := Command{Args: []string{os.Args[0], "-test.run=^" + t.Name() + "$"},
		Env: []string{child + "=1", variable + "=first"}}.Run(t.Context())
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"),
		func(line string) bool { return !strings.HasPrefix(line, variable+"=") })
	if err != nil || !slices.Equal(lines, []string{variable + "=last"}) {
		t.Errorf("the program got %q, %v", lines, err)
	}
}
