package host

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Lock keeps a second run away until release is called or this process ends.
// The error of a lock that is taken names the process that holds it.
func Lock(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		file.Close()
		return nil, fmt.Errorf("another run is in progress (process %s)", strings.TrimSpace(string(holder)))
	}
	if err := file.Truncate(0); err == nil {
		_, _ = fmt.Fprintln(file, os.Getpid())
	}
	return func() {
		os.Remove(path)
		file.Close()
	}, nil
}
