// Package remote runs kube-bootstrap on the nodes of a cluster and copies files
// to them. It needs only access to a node: Exec, Put, Get and Close.
//
//	kube-bootstrap on a node --progress json -> stderr -> relay -> session.Event
package remote

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// BinaryPath is the path of kube-bootstrap on every node.
	BinaryPath = "/usr/local/bin/kube-bootstrap"
	// KeptLines is the number of output lines that an error contains.
	KeptLines = 20

	// busy is the exit code of kube-bootstrap while another run is active on its
	// host. A run on a host continues for some time after the run that started it was
	// killed.
	busy = 4
)

// Run runs kube-bootstrap on a node, after other runs on the node have ended,
// and emits its events.
func Run(ctx context.Context, s *session.Session, node string, args, env []string) error {
	var failed error
	err := step.Until(ctx, func(context.Context) error { // the limit applies to the wait for another run, not to the run itself
		var exit *driver.ExitError
		failed = run(ctx, s, node, args, env)
		if errors.As(failed, &exit) && exit.Code == busy {
			return failed
		}
		return nil
	}, nil)
	return errors.Join(err, failed)
}

func run(ctx context.Context, s *session.Session, node string, args, env []string) error {
	relay := &relay{emit: func(e step.Event) { s.Emit(session.Event{Host: node, Event: e}) }}
	err := s.Node(node).Exec(ctx, driver.Exec{Args: append([]string{BinaryPath}, args...), Env: env, Stderr: relay})
	relay.flush()
	var exit *driver.ExitError
	if errors.As(err, &exit) && exit.Code != busy {
		return relay.explain(exit)
	}
	return err
}
