package process

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// HangUp sends SIGHUP to the daemon whose process ID is in pidFile, so that
// it reads its settings again.
func HangUp(files host.Files, pidFile string) error {
	data, err := files.Read(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("%s contains no process ID: %q", pidFile, data)
	}
	return syscall.Kill(pid, syscall.SIGHUP)
}
