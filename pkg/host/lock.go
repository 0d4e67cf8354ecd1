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

// Lock keeps a second run away until release is called or this process ends.
// The error of a lock that is taken names the process that holds it.
func Lock(path string) (release func(), err error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			holder, _ := os.ReadFile(path)
			file.Close()
			return nil, fmt.Errorf("%w (process %s)", ErrLocked, strings.TrimSpace(string(holder)))
		}
		if !stillThere(path, file) {
			file.Close() // its holder removed it between our open and our lock
			continue
		}
		if err := file.Truncate(0); err == nil {
			_, _ = fmt.Fprintln(file, os.Getpid())
		}
		return func() {
			os.Remove(path)
			file.Close()
		}, nil
	}
}

// WaitLock is Lock that waits for its turn; meanwhile it reports for what.
func WaitLock(ctx context.Context, path, what string) (release func(), err error) {
	const patience = 12 * time.Hour // a holder that dies lets go by itself
	var failed error
	err = step.Until(step.WithLimit(ctx, patience), func(context.Context) (err error) {
		release, err = Lock(path)
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
