package machines

import (
	"bytes"
	"context"
	_ "embed" // lock.sh
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// lockScript holds a lock as long as the connection lives, so that no killed run leaves one.
//
//go:embed lock.sh
var lockScript string

const (
	lockPath   = "/run/kube-bootstrap-ssh.lock"
	lockBusy   = 75 // exit code of lockScript if another run has the lock
	beatEvery  = 5 * time.Second
	lockSilent = 15 * time.Second // the longest time after which a lost connection frees the lock
)

// holder describes this run for others.
func holder() string {
	machine, _ := os.Hostname()
	name := os.Getenv("USER")
	if name == "" {
		name = "user " + strconv.Itoa(os.Getuid())
	}
	return fmt.Sprintf("%s on %s, process %d, since %s", name, machine, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
}

// lockAll takes the locks of all machines that answer. If another run has one, it returns an error that
// names the holder, and holds none.
func (p *Provider) lockAll(ctx context.Context, names []string) (release func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	release = func() { cancel(); running.Wait() }
	errs := make([]error, len(names))
	var taken sync.WaitGroup
	for i, name := range names {
		held := make(chan error, 1)
		running.Go(func() { held <- p.hold(ctx, name, held) })
		taken.Go(func() { errs[i] = <-held })
	}
	taken.Wait()
	if err := errors.Join(errs...); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// hold holds the lock of one machine until ctx ends. It sends nil to held once it has the lock.
func (p *Provider) hold(ctx context.Context, name string, held chan<- error) error {
	in, beats := io.Pipe()
	defer in.Close()
	stop := context.AfterFunc(ctx, func() { _ = beats.Close() })
	defer stop()
	go beat(beats)
	var said bytes.Buffer
	args := access.Script(lockScript, lockPath, holder(), strconv.Itoa(int(lockSilent.Seconds())))
	err := p.Node(name).Exec(context.WithoutCancel(ctx), host.Command{
		Args: args, Stdin: in, Stdout: &lockedWriter{held: held}, Stderr: &said,
	})
	if exit, ok := errors.AsType[*access.ExitError](err); ok && exit.Code == lockBusy {
		return fmt.Errorf("machine %s: %w, %s", name, host.ErrLocked, strings.TrimSpace(said.String()))
	}
	if err == nil {
		err = fmt.Errorf("machine %s: the lock ended", name)
	}
	return fmt.Errorf("lock: %w", err)
}

// lockedWriter reports the first output of lockScript.
type lockedWriter struct {
	once sync.Once
	held chan<- error
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.once.Do(func() { l.held <- nil })
	return len(p), nil
}

// beat sends a sign of life until the pipe is closed.
func beat(to *io.PipeWriter) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		if _, err := io.WriteString(to, "alive\n"); err != nil {
			return
		}
		<-ticker.C
	}
}
