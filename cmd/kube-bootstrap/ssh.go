package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// remoteExit is the status of a command that ran on a node; it has said itself
// what is wrong.
type remoteExit struct{ code int }

func (e *remoteExit) Error() string { return fmt.Sprintf("exit status %d", e.code) }

func (p *program) nodeSSH() *cobra.Command {
	c := &cobra.Command{
		Use:   "ssh NODE [COMMAND...]",
		Short: "Open a shell on a node, or run a command there",
		Long: `Open a shell on a node, or run a command there. On a terminal it gets one too.
The exit code is the command's.`,
		Example:           "  kube-bootstrap node ssh worker-1\n  kube-bootstrap node ssh worker-1 -- journalctl -u docker",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: firstArg(nodeListing.complete(p)),
	}
	o := p.addClusterFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := p.clusterOptions(c, o); err != nil {
			return err
		}
		command := args[1:]
		if len(command) == 0 {
			command = []string{"/bin/bash", "-l"}
		}
		err := p.onNode(c.Context(), *o, args[0], command)
		var code docker.ExitCode
		if errors.As(err, &code) {
			return &remoteExit{int(code)}
		}
		if err != nil {
			return &firmError{err}
		}
		return nil
	}
	return c
}

func (p *program) onNode(ctx context.Context, o cluster.Options, node string, command []string) error {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if !term.IsTerminal(in) || !term.IsTerminal(out) {
		return tools.RunOn(ctx, o.Options, node, host.Command{Args: command, Stdin: os.Stdin, Stdout: p.out, Stderr: p.err})
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
		Args: command, Env: []string{"TERM=" + p.env("TERM")}, Input: os.Stdin, Output: p.out, Sizes: sizes,
	})
}
