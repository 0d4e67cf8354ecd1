package docker

import (
	"context"
	"fmt"
	"io"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Size is that of a terminal, in characters.
type Size struct{ Rows, Columns uint }

// Shell is a command with a terminal of its own.
type Shell struct {
	Args   []string
	Env    []string
	Input  io.Reader
	Output io.Writer
	Sizes  <-chan Size // of the user's terminal, the first and every new one
}

// ShellIn runs a command on a terminal in a container, to its end.
func (d *Engine) ShellIn(ctx context.Context, name string, s Shell) error {
	made, err := d.ExecCreate(ctx, name, client.ExecCreateOptions{
		Cmd: s.Args, Env: s.Env, TTY: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return fmt.Errorf("run a shell in %s: %w", name, err)
	}
	stream, err := d.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		return fmt.Errorf("run a shell in %s: %w", name, err)
	}
	defer stream.Close()
	ended, stop := context.WithCancel(ctx)
	defer stop()
	go follow(ended, d.Client, made.ID, s.Sizes)
	go func() {
		_, _ = io.Copy(stream.Conn, s.Input) // ends with the shell, or with the user's input
		_ = stream.CloseWrite()
	}()
	if _, err := io.Copy(s.Output, stream.Reader); err != nil && ctx.Err() == nil {
		return fmt.Errorf("shell in %s: %w", name, err)
	}
	run := &execution{docker: d, container: name, command: host.Command{Args: s.Args}}
	return run.result(ctx, made.ID)
}

// follow gives the terminal in the container the size of the user's.
func follow(ctx context.Context, api *client.Client, id string, sizes <-chan Size) {
	for {
		select {
		case <-ctx.Done():
			return
		case s, more := <-sizes:
			if !more {
				return
			}
			_, _ = api.ExecResize(ctx, id, client.ExecResizeOptions{Height: s.Rows, Width: s.Columns}) // a wrong size is only ugly
		}
	}
}
