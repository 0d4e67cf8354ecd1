package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ExitCode is the error of a command that has ended with another code than 0.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// runScript reads the environment from the standard input, where no list of processes shows it, and
// prints the process ID, which a signal needs. Then the command takes the place of the shell.
const runScript = `while IFS= read -r line && [ -n "$line" ]; do export "$line"; done
[ -z "$1" ] || cd "$1" || exit 1
shift
echo "` + pidMark + `$$" >&2
exec "$@"`

// pidMark begins the line with the process ID. A shell or sudo may print lines before it.
const pidMark = "kube-bootstrap-process "

// Exec runs a command as root. The error of a command that failed contains an ExitCode. A command
// whose context ends is interrupted, as by Ctrl-C.
func (m *Machine) Exec(ctx context.Context, cmd host.Command) error {
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	client, how, err := m.connection(ctx)
	if err != nil {
		return err
	}
	session, err := newSession(ctx, client)
	if err != nil {
		return m.lostError(err)
	}
	defer session.Close()
	return m.run(ctx, session, client, how, cmd)
}

// newSession opens a session. sshd counts a session that has just ended for a moment longer (MaxSessions), and
// then refuses another one.
func newSession(ctx context.Context, client *cryptossh.Client) (*cryptossh.Session, error) {
	const attempts, pause = 5, 50 * time.Millisecond
	for i := 0; ; i++ {
		session, err := client.NewSession()
		if _, refused := errors.AsType[*cryptossh.OpenChannelError](err); !refused || i == attempts ||
			step.Pause(ctx, pause<<i) != nil {
			return session, err
		}
	}
}

func (m *Machine) run(
	ctx context.Context, session *cryptossh.Session, client *cryptossh.Client, how become, cmd host.Command,
) error {
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	var kept tail
	errs := &pidReader{to: &kept}
	if cmd.Stderr != nil {
		errs.to = cmd.Stderr
	}
	session.Stdout, session.Stderr = cmd.Stdout, errs
	script := []string{"/bin/sh", "-c", runScript, "sh", cmd.Dir}
	if err := session.Start(quoted(slices.Concat(how.command, script, cmd.Args))); err != nil {
		return m.lostError(err)
	}
	go send(in, how.input(append([]string{"LC_ALL=C"}, cmd.Env...)), cmd.Stdin)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { interrupt(client, how, session, errs.process(), ended) })
	err = session.Wait()
	stop()
	close(ended)
	errs.flush()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if failed, ok := errors.AsType[*cryptossh.ExitError](err); ok {
		err = ExitCode(failed.ExitStatus())
	} else {
		err = m.lostError(err)
	}
	return &host.CommandError{Args: cmd.Args, Output: kept.String(), Err: err}
}

// input is what precedes the standard input of a command: the password of sudo, and the environment.
func (b become) input(env []string) string {
	text := ""
	if b.password != "" {
		text = b.password + "\n"
	}
	for _, variable := range env {
		text += variable + "\n"
	}
	return text + "\n"
}

// send writes the standard input. It returns when the session ends, because the session closes in.
func send(in io.WriteCloser, first string, rest io.Reader) {
	defer in.Close()
	if _, err := io.WriteString(in, first); err == nil && rest != nil {
		_, _ = io.Copy(in, rest)
	}
}

// interruptLimit is the time for a command to end after a signal.
const interruptLimit = 5 * time.Second

// interrupt sends SIGINT to a process, and closes its session if it does not end.
func interrupt(
	client *cryptossh.Client, how become, session *cryptossh.Session, process string, ended <-chan struct{},
) {
	ctx, cancel := step.Limited(step.WithLimit(context.Background(), interruptLimit))
	defer cancel()
	if process != "" {
		_, _ = output(ctx, client, how, "kill -INT "+process)
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	_ = session.Close()
}

// lostError explains an error of a connection that has ended.
func (m *Machine) lostError(err error) error {
	if lost(err) {
		return fmt.Errorf("machine %s: the connection to %s was lost: %w", m.target.name, m.target.address(), err)
	}
	return fmt.Errorf("machine %s: %w", m.target.name, err)
}

func lost(err error) bool {
	_, missing := errors.AsType[*cryptossh.ExitMissingError](err)
	return missing || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// quoted returns a command as a shell of the machine reads it.
func quoted(args []string) string {
	var words []string
	for _, arg := range args {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// pidReader takes the process ID out of the error output, and passes the rest on.
type pidReader struct {
	to io.Writer

	mu    sync.Mutex
	begin []byte // before the process ID
	pid   string
}

func (p *pidReader) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != "" {
		return p.to.Write(data)
	}
	p.begin = append(p.begin, data...)
	before, after, found := bytes.Cut(p.begin, []byte(pidMark))
	pid, rest, ended := bytes.Cut(after, []byte("\n"))
	if !found || !ended {
		return len(data), nil
	}
	p.pid, p.begin = string(pid), nil
	if _, err := p.to.Write(slices.Concat(before, rest)); err != nil {
		return 0, err
	}
	return len(data), nil
}

// flush passes on the output of a command that has printed no process ID.
func (p *pidReader) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.begin) > 0 {
		_, _ = p.to.Write(p.begin)
		p.begin = nil
	}
}

func (p *pidReader) process() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// tail keeps the last bytes of an output. A machine may send more than this process can hold.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-most):]
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }
