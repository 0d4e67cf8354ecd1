// Command kube-bootstrap turns hosts that run Docker into a Kubernetes cluster,
// and restores them. Only this package and the packages below it print: stdout is
// data, stderr is progress and errors.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
)

// outliveReaders makes a write to a closed pipe return an error instead of
// killing the process, so that the current work can be finished or reverted. It
// does not ignore SIGPIPE, because child processes would inherit that.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func main() {
	hideSecrets(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal ends the process the hard way.
	context.AfterFunc(ctx, stop)
	outliveReaders()
	os.Exit(run(ctx, console.Open(), os.Environ(), os.Args[1:]))
}

func run(ctx context.Context, con *console.Console, environ, args []string) int {
	klog.SetLogger(logr.Discard()) // client-go would write between our lines; what matters comes back as an error
	c, err := command.Execute(ctx, newRoot(con, environ), args)
	con.End()
	code := exit.Tell(ctx, con.Err, err, c.Flags().Lookup("ignore-preflight") != nil)
	if err != nil {
		con.TellLog()
	}
	if con.Mode() == "json" {
		progress.WriteResult(con.Err, code, err)
	}
	return code
}
