package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// WithRecordLock calls do while this process has locked an existing file as lockf(3) does. The lock of
// flock(2), which Lock takes, does not exclude that one. Without the file it calls do at once.
func WithRecordLock(ctx context.Context, path string, do func() error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return do()
	}
	if err != nil {
		return err
	}
	defer file.Close() // and with that, release the lock
	err = step.Until(ctx, func(context.Context) error {
		err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("another process holds the lock %s (`fuser %[1]s`)", path)
		}
		return step.Final(err)
	}, nil)
	if err != nil {
		return err
	}
	return do()
}
