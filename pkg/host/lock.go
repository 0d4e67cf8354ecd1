package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ErrLocked is wrapped by the error of Lock if another process has the lock.
var ErrLocked = errors.New("another run is in progress")

// inBackground follows the process ID in the lock file of LockInBackground.
const inBackground = "background"

// Lock takes the lock at path until release is called or this process ends. Lock waits
// while the agent holds the lock (LockInBackground), which may be restarting Docker. If another run holds it,
// Lock returns ErrLocked with the ID of that process.
func Lock(ctx context.Context, path string) (release func(), err error) {
	return LockUnless(ctx, path, func() bool { return false })
}

// LockUnless is Lock, but returns at once, without the lock, when waits
// reports that the process in the background waits for this process.
func LockUnless(ctx context.Context, path string, waits func() bool) (release func(), err error) {
	const limit, courtesy = step.DefaultLimit, 3 * time.Second // most repairs take less than 3 seconds
	begun := time.Now()
	err = step.Until(step.WithLimit(ctx, limit), func(context.Context) (err error) {
		var background bool
		release, background, err = lock(ctx, path, "")
		if !background || waits() {
			return step.Final(err)
		}
		if time.Since(begun) > courtesy {
			interrupt(ctx, path)
		}
		return err
	}, nil)
	return release, err
}

// wanted is the signal to the process that has the lock in the background: a run waits.
const wanted = syscall.SIGUSR1

// interrupt asks the process that has the lock in the background to release it.
func interrupt(ctx context.Context, path string) {
	process, how := holder(ctx, path)
	if pid, err := strconv.Atoi(process); err == nil && how == inBackground {
		_ = syscall.Kill(pid, wanted)
	}
}

// heedWanted installs a handler, so that a signal that arrives after the release does not
// end the process.
var heedWanted = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), wanted) })

// LockInBackground is Lock for the agent: it does not wait, and a user's run
// waits for it. The returned context is cancelled after a user's run has
// waited for three seconds; the caller must then release the lock.
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

// lock also reports whether the lock is held in the background.
func lock(ctx context.Context, path, how string) (release func(), background bool, err error) {
	for {
		file, err := openLock(path)
		if err != nil {
			return nil, false, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			file.Close()
			process, held := holder(ctx, path)
			return nil, held == inBackground, fmt.Errorf("%w (process %s)", ErrLocked, process)
		}
		if !stillThere(path, file) {
			file.Close() // the holder removed the file between open and flock
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

// openLock opens or creates a lock file. In a directory that others can write, such as /tmp, the
// path may be theirs: a link to a file that this process would truncate, or a file on which they
// hold the lock for ever.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, foreignLock(path)
	}
	if err != nil {
		return nil, err
	}
	var is, dir syscall.Stat_t
	if err := errors.Join(syscall.Fstat(int(file.Fd()), &is), syscall.Stat(filepath.Dir(path), &dir)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	own := is.Uid == dir.Uid || int(is.Uid) == os.Geteuid()
	if is.Mode&syscall.S_IFMT != syscall.S_IFREG || is.Nlink > 1 || !own {
		return nil, errors.Join(foreignLock(path), file.Close())
	}
	return file, nil
}

func foreignLock(path string) error {
	return fmt.Errorf("%s must be a file of this user without other names, because it is a lock; remove it, or use a "+
		"directory that no other user can write", path)
}

// holder returns the process ID in a lock file, and inBackground or "". The
// file is empty for a moment after the lock was taken.
func holder(ctx context.Context, path string) (process, how string) {
	const moment = 50 * time.Millisecond
	var text []byte
	_ = step.Until(step.WithLimit(ctx, moment), func(context.Context) error {
		if text, _ = os.ReadFile(path); len(text) == 0 {
			return fmt.Errorf("read %s: it contains no process ID", path)
		}
		return nil
	}, nil)
	process, how, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
	return process, how
}

// WaitLock is Lock that waits until the lock is free, and reports what it waits for.
func WaitLock(ctx context.Context, path, what string) (release func(), err error) {
	const limit = 12 * time.Hour // the kernel releases the lock of a process that dies
	err = step.Until(step.WithLimit(ctx, limit), func(context.Context) (err error) {
		release, _, err = lock(ctx, path, "")
		if errors.Is(err, ErrLocked) {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		return step.Final(err)
	}, nil)
	return release, err
}

func stillThere(path string, file *os.File) bool {
	onDisk, err := os.Stat(path)
	ours, oursErr := file.Stat()
	return err == nil && oursErr == nil && os.SameFile(onDisk, ours)
}
