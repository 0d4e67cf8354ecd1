package localcluster

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func nodeSSH(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "ssh NODE [COMMAND...]",
		Short: "Open a shell on a node, or run a command there",
		Long: `Open a shell on a node, or run a command there. On a terminal it gets one too.
The exit code is the command's.`,
		Example:           "  kube-bootstrap node ssh worker-1\n  kube-bootstrap node ssh worker-1 -- journalctl -u docker",
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con.Env, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		command := args[1:]
		if len(command) == 0 {
			command = []string{"/bin/bash", "-l"}
		}
		err := onNode(c.Context(), con, *o, args[0], command)
		var code docker.ExitCode
		if errors.As(err, &code) {
			return exit.Status(int(code))
		}
		return exit.Firm(err)
	}
	return c
}

func onNode(ctx context.Context, con *console.Console, o cluster.Options, node string, command []string) error {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if !term.IsTerminal(in) || !term.IsTerminal(out) {
		return tools.RunOn(ctx, o.Options, node, host.Command{Args: command, Stdin: os.Stdin, Stdout: con.Out, Stderr: con.Err})
	}
	sizes := make(chan docker.Size, 1)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	changed <- syscall.SIGWINCH // the first size
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				if columns, rows, err := term.GetSize(out); err == nil {
					sizes <- docker.Size{Rows: uint(rows), Columns: uint(columns)}
				}
			}
		}
	}()
	before, err := term.MakeRaw(in)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(in, before) }()
	return tools.ShellOn(ctx, o.Options, node, docker.Shell{
		Args: command, Env: []string{"TERM=" + con.Env("TERM")}, Input: os.Stdin, Output: con.Out, Sizes: sizes,
	})
}
