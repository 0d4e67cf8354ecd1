package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Place is a path on a node, or on this machine if Node is empty.
type Place struct{ Node, Path string }

// Copy copies a file with its mode to a node, or from it.
func Copy(ctx context.Context, options session.Selection, from, to Place) error {
	if from.Node == "" {
		return session.OnRunning(ctx, options, unlocked, to.Node,
			func(s *session.Session, n topology.ClusterNode) error {
				return send(ctx, s.Node(n.Name), from.Path, to.Path)
			})
	}
	return session.OnRunning(ctx, options, unlocked, from.Node, func(s *session.Session, n topology.ClusterNode) error {
		return receive(ctx, s.Node(n.Name), n.Name, from.Path, to.Path)
	})
}

// homePath returns a path on a node: a relative one begins in root's home.
func homePath(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join("/root", name) + strings.Repeat("/", trailing(name))
}

func trailing(name string) int {
	if name == "" || strings.HasSuffix(name, "/") {
		return 1
	}
	return 0
}

func send(ctx context.Context, node access.Connection, local, remote string) error {
	file, err := os.Open(local)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = regular(local, info.Mode())
	}
	if err != nil {
		return err
	}
	target := homePath(remote)
	if strings.HasSuffix(target, "/") || access.Run(ctx, node, "test", "-d", target) == nil {
		target = path.Join(target, filepath.Base(local))
	}
	return node.Put(ctx, target, info.Mode(), file)
}

func receive(ctx context.Context, node access.Connection, name, remote, local string) error {
	source := homePath(remote)
	text, err := access.Output(ctx, node, "stat", "-Lc", "%f", source)
	if err != nil {
		return err
	}
	mode, err := strconv.ParseUint(strings.TrimSpace(text), 16, 32)
	if err != nil {
		return fmt.Errorf("mode of %s on %s: %w", source, name, err)
	}
	if mode&syscall.S_IFMT != syscall.S_IFREG {
		return regular(name+":"+source, fs.ModeIrregular)
	}
	if info, err := os.Stat(local); err == nil && info.IsDir() || strings.HasSuffix(local, "/") {
		local = filepath.Join(local, path.Base(source))
	}
	return fetch(ctx, node, source, local, fs.FileMode(mode)&fs.ModePerm)
}

// fetch writes a file of a node beside its destination and moves it there, so that none is cut off.
func fetch(ctx context.Context, node access.Connection, source, local string, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(local), "."+filepath.Base(local)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	err = node.Exec(ctx, host.Command{Args: []string{"cat", source}, Stdout: io.Writer(file)})
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), local)
}

func regular(name string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	return &step.Problem{Name: "copy-file", Text: name + " is not a file",
		Remedy: "send a directory with tar: `tar -c DIR | kube-bootstrap node ssh NODE -- tar -x -C /root`", Firm: true}
}
