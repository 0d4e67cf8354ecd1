// Package driver reaches the nodes of a cluster. A driver has four operations
// only, so that a further kind of node needs little code: everything else is done
// by the kube-bootstrap on the node.
package driver

import (
	"context"
	"io"
	"os"
)

// Node is a machine of a cluster, independent of how it is reached.
type Node interface {
	// Exec runs a command to its end. A command that fails is an *ExitError;
	// one whose context ends is interrupted, as by Ctrl-C.
	Exec(ctx context.Context, cmd Exec) error
	// Put writes a file in one move, making directories that are missing.
	Put(ctx context.Context, path string, mode os.FileMode, content io.Reader) error
	// Get reads a file. The error for a missing file is fs.ErrNotExist.
	Get(ctx context.Context, path string) (io.ReadCloser, error)
	Close() error
}

// Exec is a command to run on a node.
type Exec struct {
	Args   []string // Args[0] is looked up in the node's PATH
	Env    []string // KEY=VALUE
	Stdin  io.Reader
	Stdout io.Writer // nil: dropped
	Stderr io.Writer // nil: kept for the error
}

// ExitError tells which command failed on which node and how.
type ExitError struct {
	Node string
	Code int
	Err  error // with the command and what it printed
}

func (e *ExitError) Error() string { return e.Node + ": " + e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }
