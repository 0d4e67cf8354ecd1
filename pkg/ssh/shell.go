package ssh

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Shell runs a command as root in a new terminal of the machine. The error of a command that failed
// contains an ExitCode. sudo asks for its password on this terminal.
func (m *Machine) Shell(ctx context.Context, shell host.Shell) error {
	client, how, err := m.connection(ctx)
	if err != nil {
		return err
	}
	session, err := newSession(ctx, client)
	if err != nil {
		return m.lostError(err)
	}
	defer session.Close()
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	size := <-shell.Sizes
	if err := session.RequestPty(shell.Terminal, size.Rows, size.Columns, cryptossh.TerminalModes{}); err != nil {
		return fmt.Errorf("machine %s: no terminal: %w", m.target.name, err)
	}
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	session.Stdout, session.Stderr = shell.Output, shell.Output
	args := shell.Args
	if len(how.command) > 0 {
		args = slices.Concat([]string{"sudo", "--"}, args)
	}
	if err := session.Start(quoted(args)); err != nil {
		return m.lostError(err)
	}
	go send(in, "", shell.Input)
	ended, end := context.WithCancel(ctx)
	defer end()
	go shell.Follow(ended, func(size host.Size) { _ = session.WindowChange(size.Rows, size.Columns) })
	err = session.Wait()
	if failed, ok := errors.AsType[*cryptossh.ExitError](err); ok {
		return ExitCode(failed.ExitStatus())
	}
	if err != nil {
		return m.lostError(err)
	}
	return nil
}
