// Package driver reaches the nodes of a cluster. Node has few operations, so that
// a further kind of node needs little code: everything else is done by the
// kube-bootstrap on the node.
package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Node is the access to a machine of a cluster that is a container.
type Node struct {
	Engine *docker.Engine // the caller closes it
	Name   string         // of the container
}

// ExitError tells which command failed on which node and how.
type ExitError struct {
	Node string
	Code int
	Err  error // with the command and what it printed
}

func (e *ExitError) Error() string { return e.Node + ": " + e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// Exec runs a command to its end. A command that fails is an *ExitError; one
// whose context ends is interrupted, as by Ctrl-C.
func (n Node) Exec(ctx context.Context, cmd host.Command) error {
	err := n.Engine.ExecIn(ctx, n.Name, cmd)
	if code, ok := errors.AsType[docker.ExitCode](err); ok {
		return &ExitError{Node: n.Name, Code: int(code), Err: err}
	}
	return err
}

// Run runs a command and drops its output.
func (n Node) Run(ctx context.Context, args ...string) error {
	return n.Exec(ctx, host.Command{Args: args})
}

// longestOutput is more than any command prints whose output is read, in bytes.
const longestOutput = 16 << 20

// Output runs a command and returns its output. It returns an error if the output is longer than
// longestOutput, because an attacker may control the node.
func (n Node) Output(ctx context.Context, args ...string) (string, error) {
	out := output{left: longestOutput}
	err := n.Exec(ctx, host.Command{Args: args, Stdout: &out})
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

// A file goes through a command and not through the engine's own copy, which
// does not see what is mounted inside: /run is a tmpfs. Its stdin also ends if this
// process is killed, so it compares the size. In dash, the trap EXIT runs after a signal
// only if the signal has a trap.
const putScript = `set -e
umask 077
mkdir -p -m 755 "$(dirname "$1")"
trap 'rm -f "$1.new$$"' EXIT
trap 'exit 130' HUP INT TERM
cat >"$1.new$$"
size=$(wc -c <"$1.new$$")
[ "$size" -eq "$3" ] || { echo "$size of $3 bytes arrived" >&2; exit 1; }
chmod "$2" "$1.new$$"
mv -f "$1.new$$" "$1"`

// Put writes a file in one move, and creates missing directories.
func (n Node) Put(ctx context.Context, path string, mode os.FileMode, content io.ReadSeeker) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", path, err)
	}
	args := Script(putScript, path, fmt.Sprintf("%04o", mode.Perm()), strconv.FormatInt(size, 10))
	if err := n.Exec(ctx, host.Command{Args: args, Stdin: content}); err != nil {
		return fmt.Errorf("put %s: %w", path, err)
	}
	return nil
}

const noSuchFile = 44

// Get reads a file. The error for a missing file is fs.ErrNotExist.
func (n Node) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	err := n.Run(ctx, Script(fmt.Sprintf(`[ -e "$1" ] || exit %d`, noSuchFile), path)...)
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Code == noSuchFile {
		return nil, &fs.PathError{Op: "get", Path: n.Name + ":" + path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(n.Exec(ctx, host.Command{Args: []string{"cat", path}, Stdout: writer}))
	}()
	return reader, nil
}
