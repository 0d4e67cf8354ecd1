// Package access is the access to one node of a cluster: run a command, write and read files. The
// kube-bootstrap on the node does everything else, so a new kind of node needs little code.
package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Connection is the access to one node, as root.
type Connection interface {
	Executor
	// Put writes a file in one move, and creates missing directories.
	Put(ctx context.Context, path string, mode os.FileMode, content io.ReadSeeker) error
	// Get reads a file. The error for a missing file is fs.ErrNotExist.
	Get(ctx context.Context, path string) (io.ReadCloser, error)
	// Close ends the connection.
	Close() error
}

// Executor runs commands on one node.
type Executor interface {
	// Exec runs a command to its end. A command that fails is an *ExitError; one whose context ends
	// is interrupted, as by Ctrl-C. errdefs.IsNotFound reports the error that there is no such node.
	Exec(ctx context.Context, cmd host.Command) error
}

// ExitError is the error of a command that failed on a node.
type ExitError struct {
	Node string
	Code int
	Err  error // with the command and what it printed
}

func (e *ExitError) Error() string { return e.Node + ": " + e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// Run runs a command and drops its output.
func Run(ctx context.Context, on Executor, args ...string) error {
	return on.Exec(ctx, host.Command{Args: args})
}

// longestOutput is more than any command prints whose output is read, in bytes.
const longestOutput = 16 << 20

// Output runs a command and returns its output. It returns an error if the output is longer than
// longestOutput, because an attacker may control the node.
func Output(ctx context.Context, on Executor, args ...string) (string, error) {
	out := output{left: longestOutput}
	err := on.Exec(ctx, host.Command{Args: args, Stdout: &out})
	return out.kept.String(), err
}

type output struct {
	kept strings.Builder
	left int
}

func (o *output) Write(p []byte) (int, error) {
	if o.left -= len(p); o.left < 0 {
		return 0, fmt.Errorf("the command printed more than %d MiB", longestOutput>>20)
	}
	return o.kept.Write(p)
}

// Script returns the command that runs a shell script with arguments.
func Script(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

// RunScript runs a shell script, which may read in. If the script fails, the error has what it printed, not
// its text.
func RunScript(ctx context.Context, on Executor, in io.Reader, script string, args ...string) error {
	err := on.Exec(ctx, host.Command{Args: Script(script, args...), Stdin: in})
	failed, ok := errors.AsType[*host.CommandError](err)
	if !ok {
		return err
	}
	reason := failed.Err
	if said := strings.TrimSpace(failed.Output); said != "" {
		reason = errors.New(said)
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return &ExitError{exit.Node, exit.Code, reason}
	}
	return reason
}
