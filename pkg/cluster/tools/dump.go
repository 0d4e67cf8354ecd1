// Package tools contains commands that need only the running nodes of a cluster:
// dump, load-image, kubectl, and the copies and commands of a user.
package tools

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/dump"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Dump writes a dump of each node into a subdirectory of the new directory dir, with the
// output of all pods and containers, and on the first control plane with the objects of
// the cluster. It needs no lock, so that it can show why another run does not end.
func Dump(ctx context.Context, options session.Selection, dir string, emit func(session.HostEvent)) error {
	scope := session.Requirements{Needs: session.Nodes, Emit: emit}
	return session.Do(ctx, options, scope, func(s *session.Session, state topology.State) error {
		if err := dump.MakeDir(dir); err != nil {
			return err
		}
		first, _ := state.RunningControlPlane("") // the zero node if none runs
		var stage []step.Step
		for _, n := range state.Nodes() {
			stage = append(stage, dumpStep(s, n, filepath.Join(dir, n.Name), n.Name == first.Name))
		}
		return s.Run(ctx, step.Plan{stage})
	})
}

func dumpStep(s *session.Session, n topology.NodeState, dir string, objects bool) step.Step {
	name := "dump " + n.Name
	return step.Always(step.IDOf("dump", n.Name), name, func(ctx context.Context) error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		log := dump.Redact([]byte(s.Provider.ConsoleLog(ctx, n.Name, 5000)))
		if err := os.WriteFile(filepath.Join(dir, "console.log"), log, 0o600); err != nil || !n.Running() {
			return err
		}
		run := func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			return s.Node(n.Name).Exec(ctx, host.Command{Args: args, Stdout: stdout, Stderr: stderr})
		}
		from := dump.Target{Exec: run, Program: s.Provider.ProgramPath(), Workloads: true, Objects: objects}
		failed, err := dump.Collect(ctx, from, dir)
		if len(failed) > 0 {
			text := n.Name + ": missing or incomplete: " + strings.Join(failed, ", ") + "; see " + filepath.Join(dir,
				dump.ErrorsFile)
			s.Emit(session.HostEvent{Event: step.Event{At: time.Now(), Step: name, Kind: step.Note, Message: text}})
		}
		return err
	})
}
