// Package tools contains commands that need only the running nodes of a cluster:
// dump, load-image, docker-env and ssh.
package tools

import (
	"archive/tar"
	"context"
	_ "embed" // dump.sh
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dumpScript writes an archive with the status and logs of a node. A command that
// fails does not stop it.
//
//go:embed scripts/dump.sh
var dumpScript string

// Dump writes the data for a bug report into a subdirectory of dir for each
// node: status, logs, network, and on the first control plane the objects of
// the cluster. Dump omits or removes secrets, see redacted.
func Dump(ctx context.Context, options session.Options, dir string, emit func(session.Event)) error {
	scope := session.Scope{Needs: session.Nodes, Lock: session.ClusterLock, Emit: emit}
	return session.Do(ctx, options, scope, func(s *session.Session, state topology.State) error {
		first, _ := state.RunningMaster("") // the zero node if none runs
		var stage []step.Step
		for _, n := range state.Nodes() {
			stage = append(stage, dumpStep(s, n, filepath.Join(dir, n.Name), n.Name == first.Name))
		}
		return s.Run(ctx, step.Plan{stage})
	})
}

func dumpStep(s *session.Session, n topology.NodeState, dir string, objects bool) step.Step {
	return step.Step{
		Name: "dump " + n.Name, Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{"write " + dir}, nil },
		Apply: func(ctx context.Context) error {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			log := redactText([]byte(s.Engine.Tail(ctx, n.Name, 5000)))
			if err := os.WriteFile(filepath.Join(dir, "console.log"), log, 0o600); err != nil || !n.Running() {
				return err
			}
			// A node that does not answer does not stop the dump of the others.
			if err := dumpHost(ctx, s.Node(n.Name), dir, objects); err != nil && ctx.Err() == nil {
				return os.WriteFile(filepath.Join(dir, "error.txt"), redactText([]byte(err.Error()+"\n")), 0o600)
			}
			return ctx.Err()
		},
	}
}

func dumpHost(ctx context.Context, node driver.Node, dir string, objects bool) error {
	reader, writer := io.Pipe()
	var wg sync.WaitGroup
	var ran error
	wg.Go(func() {
		args := []string{"/bin/sh", "-c", dumpScript, "sh", fmt.Sprint(objects)}
		ran = node.Exec(ctx, driver.Exec{Args: args, Stdout: writer})
		writer.CloseWithError(ran)
	})
	err := unpack(reader, dir)
	reader.CloseWithError(err)
	wg.Wait()
	return errors.Join(err, ran)
}

// unpack extracts an archive into dir and removes the secrets.
func unpack(from io.Reader, dir string) error {
	const most = 64 << 20 // of one file
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, from) // the padding of the last block
			return err
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(archive, most))
		if err != nil {
			return err
		}
		path := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, redacted(header.Name, data), 0o600); err != nil {
			return err
		}
	}
}
