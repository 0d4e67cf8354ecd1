// Command kube-bootstrap turns hosts that run Docker into a Kubernetes cluster,
// and restores them. No other package prints or exits: stdout is data, stderr is
// progress and errors.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
)

// outliveReaders makes a write to a closed pipe return an error instead of
// killing the process, so that the current work can be finished or reverted. It
// does not ignore SIGPIPE, because child processes would inherit that.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// output is stdout. It distinguishes a closed pipe from other broken
// connections.
type output struct{ io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errNotRead
	}
	return n, err
}

func main() {
	hideSecrets(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	outliveReaders()
	p := &program{
		in:       os.Stdin,
		out:      output{os.Stdout},
		err:      os.Stderr,
		env:      os.Getenv,
		environ:  os.Environ,
		terminal: progress.Redraws(os.Stderr, os.Getenv),
		asks:     asks(os.Stdin, os.Stderr, os.Getenv),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
