package providertest

import (
	"context"
	_ "embed" // enter.sh
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// node is the access to a directory of this machine as if it were a machine.
type node struct {
	dir, name   string // dir is "" if there is no such node
	connections *atomic.Int32
}

// enterScript runs a command with the root directory $1, and with the programs of this machine. The
// mounts are in a mount namespace of their own, so they end with the command.
//
//go:embed enter.sh
var enterScript string

// Exec ends a command by a signal that it cannot catch.
func (n node) Exec(ctx context.Context, cmd host.Command) error {
	root, err := n.root()
	if err != nil {
		return err
	}
	inside := append([]string{"unshare", "--mount", "--propagation", "private"},
		access.Script(enterScript, root, cmd.Dir)...)
	cmd.Args, cmd.Dir, cmd.Group = append(inside, cmd.Args...), "", true
	if cmd.Stdout == nil {
		cmd.Stdout = io.Discard
	}
	_, err = cmd.Run(ctx)
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) {
		return &access.ExitError{Node: n.name, Code: exit.ExitCode(), Err: err}
	}
	return err
}

// Put writes the file from outside, without a command.
func (n node) Put(_ context.Context, path string, mode os.FileMode, content io.ReadSeeker) error {
	root, err := n.root()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return host.WriteFile(path, data, mode)
}

// Get reads the file from outside, without a command.
func (n node) Get(_ context.Context, path string) (io.ReadCloser, error) {
	root, err := n.root()
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(root, path))
}

func (n node) Close() error {
	n.connections.Add(-1)
	return nil
}

// root returns the root directory of a node that runs.
func (n node) root() (string, error) {
	if n.dir == "" {
		return "", fmt.Errorf("node %s: %w", n.name, errdefs.ErrNotFound)
	}
	one, err := readNode(n.dir)
	if err == nil && !one.Running() {
		err = fmt.Errorf("node %s is off", n.name)
	}
	return filepath.Join(n.dir, "root"), err
}
