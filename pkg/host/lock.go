package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
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
	const patience = time.Minute // the background does one step at a time
	var failed error
	err = step.Until(step.WithLimit(ctx, patience), func(context.Context) error {
		var background bool
		release, background, failed = lock(ctx, path, "")
		if background && !waits() {
			return failed
		}
		return nil
	}, nil)
	if err == nil {
		err = failed
	}
	return release, err
}

// LockInBackground is Lock for a process that no user waits for: it does not
// wait, and a run of a user waits for it.
func LockInBackground(path string) (release func(), err error) {
	release, _, err = lock(context.Background(), path, inBackground)
	return release, err
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
