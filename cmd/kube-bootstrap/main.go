// Command kube-bootstrap turns hosts that run Docker into a Kubernetes cluster,
// and takes it all back. This package is the only one that prints or exits:
// stdout is data, stderr is progress and errors.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	hideSecrets(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	p := &program{
		out:      os.Stdout,
		err:      os.Stderr,
		env:      os.Getenv,
		terminal: redraws(os.Stderr, os.Getenv),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
