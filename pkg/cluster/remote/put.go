package remote

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FileCopy is a file of this machine that a node gets.
type FileCopy struct {
	From, To string
	Mode     os.FileMode
}

// PutBinary returns the step that copies kube-bootstrap to a node.
func PutBinary(s *session.Session, node, binary string) step.Step {
	return Put(s, step.IDOf("put-program", node), "put kube-bootstrap on "+node, node,
		FileCopy{binary, s.Provider.ProgramPath(), 0o755})
}

// Put returns the step that copies a file to a node, unless the node has the same content. Its
// Check also works if the node does not exist, because a step of the same stage may create it.
func Put(s *session.Session, id step.ID, name, node string, f FileCopy) step.Step {
	differs := func(ctx context.Context) (bool, error) {
		same, err := f.same(ctx, s.Node(node))
		return !same, err
	}
	return step.When(id, name, "write "+node+":"+f.To, differs, func(ctx context.Context) error {
		file, err := os.Open(f.From)
		if err != nil {
			return err
		}
		defer file.Close()
		return s.Node(node).Put(ctx, f.To, f.Mode, file)
	})
}

func (f FileCopy) same(ctx context.Context, node access.Connection) (bool, error) {
	want, err := Sum(f.From)
	if err != nil {
		return false, err
	}
	have, err := access.Output(ctx, node, "sha256sum", f.To)
	if _, missing := errors.AsType[*access.ExitError](err); err != nil && !missing && !errdefs.IsNotFound(err) {
		return false, err
	}
	return strings.HasPrefix(have, want), nil
}

// sums contains the checksums of files in their last version: a command needs that of this
// program for its record, for images and for each host.
var sums sync.Map // sumKey → string

type sumKey struct {
	path    string
	size    int64
	changed int64 // ns
}

// Sum returns the SHA-256 checksum of a file of this machine.
func Sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	key := sumKey{path, info.Size(), info.ModTime().UnixNano()}
	if known, ok := sums.Load(key); ok {
		return known.(string), nil
	}
	sum, err := digest.FromReader(file)
	if err != nil {
		return "", err
	}
	sums.Store(key, sum.Encoded())
	return sum.Encoded(), nil
}
