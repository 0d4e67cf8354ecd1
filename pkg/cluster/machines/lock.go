package machines

import (
	"bytes"
	"context"
	_ "embed" // lock.sh
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// lockScript takes the lock of a machine. holdScript holds the lock while the client sends a character
// every few seconds, so that a killed run leaves no lock. The character is not a newline, because the
// shell removes newlines from the output of a command.
//
//go:embed lock.sh
var lockScript string

const holdScript = `while [ -n "$(timeout "$silence" head -c 1)" ]; do :; done`

// lockedFacts is the script that takes the lock, prints the facts, and holds the lock. Thus no other run
// changes the machine after the facts were read, and both need one round trip.
func lockedFacts() string { return lockScript + "{\n" + factsScript + "} </dev/null\n" + holdScript }

const (
	lockPath   = "/run/kube-bootstrap-ssh.lock"
	lockBusy   = 75 // exit code of lockScript if another run has the lock
	beatEvery  = 5 * time.Second
	lockSilent = 30 * time.Second // the longest time after which a lost connection frees the lock
)

// holder describes this run for others.
func holder() string {
	machine, _ := os.Hostname()
	name := "user " + strconv.Itoa(os.Getuid())
	if known, err := user.Current(); err == nil {
		name = known.Username
	}
	since := time.Now().UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s on %s, process %d, since %s", name, machine, os.Getpid(), since)
}

// lockAll takes the locks of all machines that answer, and asks for their facts. If another run has a
// lock, it returns an error that names the holder, and holds none.
func (p *Provider) lockAll(ctx context.Context) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	me := holder()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	release = func() { cancel(); running.Wait() }
	p.facts = p.each(func(name string) Facts {
		if known := p.facts[name]; known.off() {
			return known
		}
		found := make(chan Facts, 1)
		running.Go(func() { found <- Facts{Err: p.hold(ctx, name, me, found)} })
		f := <-found
		if errors.Is(f.Err, errOwnLock) { // a second name of one machine, which is a problem of the file
			f = p.ask(ctx, name)
		}
		return f
	})
	for _, m := range p.choice.Machines {
		if held := p.facts[m.Spec.Name].Err; errors.Is(held, host.ErrLocked) {
			err = errors.Join(err, held)
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// errOwnLock is the error of a lock that this run has already.
var errOwnLock = errors.New("this run has the lock already")

// hold holds the lock of one machine until ctx ends. It sends the facts once it has the lock.
func (p *Provider) hold(ctx context.Context, name, me string, found chan<- Facts) error {
	if err := p.access[name].Connect(ctx); err != nil {
		return err
	}
	in, beats := io.Pipe()
	defer in.Close()
	stop := context.AfterFunc(ctx, func() { _ = beats.Close() })
	defer stop()
	go beat(ctx, beats)
	var said bytes.Buffer
	args := access.Script(lockedFacts(), lockPath, me, strconv.Itoa(int(lockSilent.Seconds())), programDir)
	err := p.Node(name).Exec(context.WithoutCancel(ctx), host.Command{
		Args: args, Stdin: in, Stdout: &factsWriter{name: name, found: found}, Stderr: &said,
	})
	reason := strings.TrimSpace(said.String())
	if exit, ok := errors.AsType[*access.ExitError](err); ok && exit.Code == lockBusy {
		if strings.HasSuffix(reason, me) {
			return errOwnLock
		}
		return fmt.Errorf("machine %s: %w, %s", name, host.ErrLocked, reason)
	}
	if err == nil {
		err = errors.New("it ended")
	}
	return fmt.Errorf("machine %s: lock: %w: %s", name, err, reason)
}

// factsWriter passes the facts on once they are complete.
type factsWriter struct {
	name  string
	text  []byte
	found chan<- Facts
}

func (w *factsWriter) Write(p []byte) (int, error) {
	w.text = append(w.text, p...)
	if bytes.HasSuffix(w.text, []byte(factsEnd)) {
		w.found <- parseFacts(w.name, string(w.text), time.Now())
	}
	return len(p), nil
}

// beat sends a sign of life until ctx ends or the pipe is closed.
func beat(ctx context.Context, to *io.PipeWriter) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		if _, err := io.WriteString(to, "."); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
