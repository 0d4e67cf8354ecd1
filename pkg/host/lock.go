package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ErrLocked is in the error of Lock when another process holds the lock.
var ErrLocked = errors.New("another run is in progress")

// inBackground follows the process in the file of a lock that LockInBackground
// took.
const inBackground = "background"

// Lock keeps a second run away until release is called or this process ends.
// It waits while a process in the background holds the lock, which is a matter
// of seconds. The error of a lock that another run holds names its process.
func Lock(ctx context.Context, path string) (release func(), err error) {
	return LockUnless(ctx, path, func() bool { return false })
}

// LockUnless is Lock that does not wait, or no longer, once waits reports that
// the process in the background waits for this one.
func LockUnless(ctx context.Context, path string, waits func() bool) (release func(), err error) {
	const patience, courtesy = time.Minute, 3 * time.Second // most repairs take less
	begun := time.Now()
	var failed error
	err = step.Until(step.WithLimit(ctx, patience), func(context.Context) error {
		var background bool
		release, background, failed = lock(ctx, path, "")
		if !background || waits() {
			return nil
		}
		if time.Since(begun) > courtesy {
			interrupt(ctx, path)
		}
		return failed
	}, nil)
	if err == nil {
		err = failed
	}
	return release, err
}

// wanted tells a process that holds a lock in the background that a run waits.
const wanted = syscall.SIGUSR1

// interrupt asks the process that holds the lock in the background to let go.
func interrupt(ctx context.Context, path string) {
	process, how := holder(ctx, path)
	if pid, err := strconv.Atoi(process); err == nil && how == inBackground {
		_ = syscall.Kill(pid, wanted)
	}
}

// heedWanted keeps a signal that comes late, after the lock was released, from
// ending the process.
var heedWanted = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), wanted) })

// LockInBackground is Lock for a process that no user waits for: it does not
// wait, and a run of a user waits for it. The context that it returns ends when
// such a run has waited for some seconds: the process must then let go.
func LockInBackground(ctx context.Context, path string) (held context.Context, release func(), err error) {
	heedWanted()
	held, stop := signal.NotifyContext(ctx, wanted)
	let, _, err := lock(ctx, path, inBackground)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return held, func() { let(); stop() }, nil
}

// lock reports also whether the lock is held in the background.
func lock(ctx context.Context, path, how string) (release func(), background bool, err error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, false, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			file.Close()
			process, held := holder(ctx, path)
			return nil, held == inBackground, fmt.Errorf("%w (process %s)", ErrLocked, process)
		}
		if !stillThere(path, file) {
			file.Close() // its holder removed it between our open and our lock
			continue
		}
		if err := file.Truncate(0); err == nil {
			_, _ = fmt.Fprintln(file, os.Getpid(), how)
		}
		return func() {
			os.Remove(path)
			file.Close()
		}, false, nil
	}
}

// holder returns the process in the file of a lock that is held, and how it
// holds it. The file is empty for a moment after it was locked.
func holder(ctx context.Context, path string) (process, how string) {
	const moment = 50 * time.Millisecond
	var text []byte
	_ = step.Until(step.WithLimit(ctx, moment), func(context.Context) error {
		if text, _ = os.ReadFile(path); len(text) == 0 {
			return fmt.Errorf("read %s: it names no process", path)
		}
		return nil
	}, nil)
	process, how, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return process, how
}

// WaitLock is Lock that waits for its turn; meanwhile it reports for what.
func WaitLock(ctx context.Context, path, what string) (release func(), err error) {
	const patience = 12 * time.Hour // a holder that dies lets go by itself
	var failed error
	err = step.Until(step.WithLimit(ctx, patience), func(context.Context) (err error) {
		release, _, err = lock(ctx, path, "")
		if errors.Is(err, ErrLocked) {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		failed = err
		return nil
	}, nil)
	return release, errors.Join(err, failed)
}

func stillThere(path string, file *os.File) bool {
	onDisk, err := os.Stat(path)
	if err != nil {
		return false
	}
	ours, err := file.Stat()
	return err == nil && os.SameFile(onDisk, ours)
}
