// Package remote runs kube-bootstrap on the nodes of a cluster and copies files
// to them. It needs only access to a node: Exec, Put and Get.
//
//	kube-bootstrap on a node --progress json -> stderr -> relay -> session.Event
package remote

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// BinaryPath is the path of kube-bootstrap on every node.
	BinaryPath = "/usr/local/bin/kube-bootstrap"
	// busy is the exit code of kube-bootstrap while another run is active on its
	// host, such as one that goes on after the run that started it was killed.
	busy = 4
)

// Run runs kube-bootstrap on a node, after other runs there, and emits its events.
func Run(ctx context.Context, s *session.Session, node string, args, env []string) error {
	var failed error
	err := step.Until(ctx, func(context.Context) error { // the limit applies to the wait for another run, not to the run itself
		failed = run(ctx, s, node, args, env)
		if exit, ok := errors.AsType[*driver.ExitError](failed); ok && exit.Code == busy {
			return failed
		}
		return nil
	}, nil)
	return errors.Join(err, failed)
}

func run(ctx context.Context, s *session.Session, node string, args, env []string) error {
	relay := newRelay(func(e step.Event) { s.Emit(session.Event{Host: node, Event: e}) })
	args = slices.Concat([]string{BinaryPath}, args, []string{"--progress", "json"})
	err := s.Node(node).Exec(ctx, host.Command{Args: args, Env: env, Stderr: relay})
	relay.Flush()
	if exit, ok := errors.AsType[*driver.ExitError](err); ok && exit.Code != busy {
		return relay.explain(exit)
	}
	return err
}
