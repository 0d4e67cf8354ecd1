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
// contains an ExitCode.
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
	args, first, modes := how.inTerminal(shell.Args)
	if err := session.RequestPty(shell.Terminal, size.Rows, size.Columns, modes); err != nil {
		return fmt.Errorf("machine %s: no terminal: %w", m.target.name, err)
	}
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	session.Stdout, session.Stderr = shell.Output, shell.Output
	if err := session.Start(quoted(args)); err != nil {
		return m.lostError(err)
	}
	go send(in, first, shell.Input)
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

// passwordScript gives sudo the first line of the terminal as the password. Then sudo asks for none on this
// terminal, unless its settings forbid it to remember a password.
const passwordScript = `IFS= read -r password
stty echo
printf '%s\n' "$password" | sudo -S -p '' -v 2>/dev/null
exec sudo -- "$@"`

// inTerminal returns the command that runs args as root in a terminal, its first input, and the modes of
// the terminal, which does not show the password.
func (b become) inTerminal(args []string) (command []string, first string, modes cryptossh.TerminalModes) {
	switch {
	case len(b.command) == 0:
		return args, "", cryptossh.TerminalModes{}
	case b.password == "":
		return slices.Concat([]string{"sudo", "--"}, args), "", cryptossh.TerminalModes{}
	}
	command = slices.Concat([]string{"/bin/sh", "-c", passwordScript, "sh"}, args)
	return command, b.password + "\n", cryptossh.TerminalModes{cryptossh.ECHO: 0}
}
