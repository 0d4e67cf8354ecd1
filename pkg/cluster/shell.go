package cluster

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// RunOn runs a command on a node. Its status is a docker.ExitCode.
func RunOn(ctx context.Context, options Options, name string, c host.Command) error {
	return onRunning(ctx, options, name, func(f *fleet, m member) error { return f.docker.ExecIn(ctx, m.name, c) })
}

// ShellOn runs a command on a node with a terminal of its own.
func ShellOn(ctx context.Context, options Options, name string, s docker.Shell) error {
	return onRunning(ctx, options, name, func(f *fleet, m member) error { return f.docker.ShellIn(ctx, m.name, s) })
}

// onRunning finds a node that runs. It changes nothing, so any number of runs
// may do so at the same time.
func onRunning(ctx context.Context, options Options, name string, do func(*fleet, member) error) error {
	f, err := open(options, nil)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	found, err := f.found(ctx)
	if err != nil {
		return f.noAnswer(err)
	}
	if len(found) == 0 {
		return f.noHosts(ctx)
	}
	f.adopt(found)
	m, err := f.pickRunning(name, found)
	if err != nil {
		return err
	}
	return do(f, m)
}
