package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ExecIn runs a command in a container, with Dir there. If it fails, the error is a
// *host.CommandError with an ExitCode. If ctx ends, the command is interrupted.
func (d *Engine) ExecIn(ctx context.Context, name string, c host.Command) error {
	id, stream, err := d.attach(ctx, name, client.ExecCreateOptions{
		// The shell prints its process ID before it becomes the command, because
		// the API of Docker cannot stop an exec.
		Cmd:         append([]string{"/bin/sh", "-c", `echo $$ >&2; exec "$@"`, "sh"}, c.Args...),
		Env:         c.Env,
		WorkingDir:  c.Dir,
		AttachStdin: c.Stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return step.Wrap(err, "run a command in %s", name)
	}
	defer stream.Close()
	run := &execution{docker: d, container: name, command: c, stream: stream}
	if err := run.copy(ctx); err != nil {
		return err
	}
	return run.result(ctx, id)
}

// attach starts a command in a container and returns its input and output.
func (d *Engine) attach(
	ctx context.Context, name string, options client.ExecCreateOptions,
) (string, client.HijackedResponse, error) {
	made, err := d.ExecCreate(ctx, name, options)
	if err != nil {
		return "", client.HijackedResponse{}, err
	}
	stream, err := d.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: options.TTY})
	return made.ID, stream.HijackedResponse, err
}

// ExitCode is the error of a command with this exit status.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

type execution struct {
	docker    *Engine
	container string
	command   host.Command
	stream    client.HijackedResponse
	pid       firstLine
	kept      beginning
}

func (e *execution) copy(ctx context.Context) error {
	sent := make(chan error, 1)
	if e.command.Stdin != nil {
		go e.send(sent)
	}
	stdout := cmp.Or(e.command.Stdout, io.Discard)
	e.pid.rest = cmp.Or[io.Writer](e.command.Stderr, &e.kept)
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = stdcopy.StdCopy(stdout, &e.pid, e.stream.Reader)
	}()
	select {
	case <-done:
		select {
		case failed := <-sent:
			return cmp.Or(failed, err)
		default:
			return err
		}
	case <-ctx.Done():
		e.interrupt(ctx, done)
		return context.Cause(ctx)
	}
}

// send passes stdin on. A command need not read its stdin to the end, so an error of the
// stream is none. If stdin cannot be read, the command sees its end too early.
func (e *execution) send(sent chan<- error) {
	source := &errorReader{Reader: e.command.Stdin}
	_, _ = io.Copy(e.stream.Conn, source)
	sent <- step.Wrap(source.err, "read the stdin of a command in %s", e.container)
	_ = e.stream.CloseWrite()
}

// errorReader keeps the error with which a reader ends.
type errorReader struct {
	io.Reader
	err error
}

func (k *errorReader) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	// nohup gives a program a stdin that it cannot read
	if err != nil && err != io.EOF && !errors.Is(err, syscall.EBADF) {
		k.err = err
	}
	return n, err
}

// interrupt sends SIGINT to the command, ends its stdin and waits shortly for its last
// output. Nothing writes output afterwards.
func (e *execution) interrupt(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) //nolint:forbidigo // for last output
	defer cancel()
	if pid := e.pid.text(); pid != "" {
		_ = e.docker.ExecIn(ctx, e.container, host.Command{Args: []string{"kill", "-INT", pid}})
	}
	if e.command.Stdin != nil {
		_ = e.stream.CloseWrite()
	}
	select {
	case <-done:
	case <-ctx.Done():
		e.stream.Close()
		<-done
	}
}

func (e *execution) result(ctx context.Context, id string) error {
	// The stream may end before the engine has recorded the exit.
	for {
		state, err := e.docker.ExecInspect(ctx, id, client.ExecInspectOptions{})
		switch {
		case err != nil:
			return fmt.Errorf("result of a command in %s: %w", e.container, err)
		case !state.Running && state.ExitCode != 0:
			return &host.CommandError{Args: e.command.Args, Output: e.kept.String(), Err: ExitCode(state.ExitCode)}
		case !state.Running:
			return nil
		}
		if err := step.Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// beginning keeps the first bytes of a stream, as the reason of an error.
type beginning struct{ kept bytes.Buffer }

// longestReason is the length of the text that is kept, in bytes. An attacker may control the
// container and print any amount.
const longestReason = 64 << 10

func (b *beginning) Write(p []byte) (int, error) {
	_, _ = b.kept.Write(p[:min(len(p), longestReason-b.kept.Len())]) // never fails
	return len(p), nil
}

func (b *beginning) String() string { return b.kept.String() }

// longestPID is longer than the line with a process ID, in bytes.
const longestPID = 32

// firstLine keeps the first line of a stream and passes on the rest.
type firstLine struct {
	mu   sync.Mutex
	kept strings.Builder
	done bool
	rest io.Writer
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return f.rest.Write(p)
	}
	line, rest, found := bytes.Cut(p, []byte("\n"))
	f.kept.Write(line[:min(len(line), longestPID)])
	f.done = found || f.kept.Len() >= longestPID
	if len(rest) == 0 {
		return len(p), nil
	}
	_, err := f.rest.Write(rest)
	return len(p), err
}

func (f *firstLine) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.done {
		return ""
	}
	return f.kept.String()
}

// ShellIn runs a command on a terminal in a container, to its end.
func (d *Engine) ShellIn(ctx context.Context, name string, s host.Shell) error {
	id, stream, err := d.attach(ctx, name, client.ExecCreateOptions{
		Cmd: s.Args, Env: []string{"TERM=" + s.Terminal}, TTY: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return step.Wrap(err, "run a shell in %s", name)
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Close)()
	ended, stop := context.WithCancel(ctx)
	defer stop()
	go s.Follow(ended, func(size host.Size) {
		// A wrong size is only ugly.
		to := client.ExecResizeOptions{Height: uint(size.Rows), Width: uint(size.Columns)}
		_, _ = d.ExecResize(ended, id, to)
	})
	go func() {
		_, _ = io.Copy(stream.Conn, s.Input) // ends with the shell, or with the user's input
		_ = stream.CloseWrite()
	}()
	_, err = io.Copy(s.Output, stream.Reader)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("shell in %s: %w", name, err)
	}
	run := &execution{docker: d, container: name, command: host.Command{Args: s.Args}}
	return run.result(ctx, id)
}
