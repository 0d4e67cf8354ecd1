// Package host writes files of the machine and runs its commands. The packages in it
// change units, network links, firewall rules and the kernel. No package outside of
// pkg/host imports os/exec, netlink or go-systemd.
package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Command is a program to run. Args[0] is looked up in PATH.
type Command struct {
	Args   []string
	Env    []string // added to the environment of this process, KEY=VALUE
	Dir    string
	Stdin  io.Reader
	Stdout io.Writer // nil: collected and returned
	Stderr io.Writer // nil: kept for the error
	Group  bool      // if ctx ends, the processes that the program has started end too
}

// CommandError is the error of a command. Its text has the command, for a shell, and what it printed.
type CommandError struct {
	Args   []string
	Output string
	Err    error
}

func (e *CommandError) Error() string {
	text := fmt.Sprintf("`%s`: %v", strings.Join(e.Args, " "), e.Err)
	if out := strings.TrimSpace(e.Output); out != "" {
		text += ": " + out
	}
	return text
}

func (e *CommandError) Unwrap() error { return e.Err }

// outputDelay is how long Run waits, after the end of ctx, for processes that the program
// has started and that keep its output open.
const outputDelay = 5 * time.Second

// Run runs the command to its end and returns what it wrote to stdout, unless
// Stdout is set. A failure is a *CommandError.
func (c Command) Run(ctx context.Context) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), c.Env...) // their texts are compared
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Stdin, c.Stdout, c.Stderr
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.Group}
	cmd.Cancel = func() error {
		// Set before, it would also limit how long a slow reader takes the rest of the output.
		cmd.WaitDelay = outputDelay
		if c.Group {
			return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		return cmd.Process.Kill()
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return stdout.Bytes(), &CommandError{Args: c.Args, Output: stderr.String(), Err: err}
	}
	return stdout.Bytes(), nil
}

// Run runs a program and returns its stdout without the last newline.
func Run(ctx context.Context, args ...string) (string, error) {
	out, err := Command{Args: args}.Run(ctx)
	return strings.TrimRight(string(out), "\n"), err
}

// Become replaces this process by a program, which gets the same files, terminal
// and signals. Variables in env replace those of this process. It returns only if it fails.
func Become(path string, args []string, env ...string) error {
	// Environ keeps the last of equal variables. A program in Go would read the first one.
	// https://github.com/golang/go/blob/go1.26.8/src/syscall/env_unix.go#L37-L45
	all := (&exec.Cmd{Env: append(os.Environ(), env...)}).Environ()
	if err := syscall.Exec(path, args, all); err != nil {
		return &CommandError{Args: append([]string{path}, args[1:]...), Err: err}
	}
	return nil
}
