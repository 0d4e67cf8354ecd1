package host

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// HangUp asks the daemon that wrote its process id into a file to read its
// settings.
func (f Files) HangUp(pidFile string) error {
	data, err := f.Read(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("%s holds no process id: %q", pidFile, data)
	}
	return syscall.Kill(pid, syscall.SIGHUP)
}
