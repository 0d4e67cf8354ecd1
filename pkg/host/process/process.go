// Package process examines and ends processes, and limits the memory of this one.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// End ends the processes whose arguments meant accepts. It sends SIGTERM, waits for
// patience, and sends SIGKILL. It ignores processes in other PID namespaces, that is,
// in containers, and those of other users, who can give their processes any arguments.
func End(ctx context.Context, limit time.Duration, meant func(args []string) bool) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, pid := range processes(meant) {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		gone := step.Until(step.WithLimit(ctx, limit), func(context.Context) error {
			if n := len(processes(meant)); n > 0 {
				return errors.New(strconv.Itoa(n) + " processes have not ended yet")
			}
			return nil
		}, nil)
		if gone == nil || ctx.Err() != nil {
			return gone
		}
	}
	return errors.New("processes do not end")
}

// processes returns the processes that meant accepts. Ended ones have no arguments.
func processes(meant func(args []string) bool) (pids []int) {
	ours, _ := os.Readlink("/proc/self/ns/pid")
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, path := range found {
		line, err := os.ReadFile(path)
		if err != nil || len(line) == 0 || !meant(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")) {
			continue
		}
		dir := filepath.Dir(path)
		if owner, err := os.Stat(dir); err != nil || int(owner.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			continue
		}
		if theirs, err := os.Readlink(dir + "/ns/pid"); err == nil && theirs == ours {
			pid, _ := strconv.Atoi(filepath.Base(dir)) // digits
			pids = append(pids, pid)
		}
	}
	return pids
}

// Runs reports whether a process runs the executable at path, and whether it is current.
func Runs(files host.Files, pid int, path string) (runs, current bool) {
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	target, err := os.Readlink(exe)
	if err != nil || strings.TrimSuffix(target, " (deleted)") != files.Path(path) {
		return false, false
	}
	now, err := os.Stat(exe)
	if err != nil {
		return false, false
	}
	installed, err := os.Stat(files.Path(path))
	return true, err == nil && os.SameFile(now, installed)
}

const capSysResource = 24

// CanLowerOOMScore reports whether a process here may have CAP_SYS_RESOURCE.
func CanLowerOOMScore() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err != nil || mayHave(capSysResource, string(status))
}

// mayHave reports whether the bounding set in /proc/PID/status has a capability.
func mayHave(capability int, status string) bool {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err != nil || set&(1<<capability) != 0
		}
	}
	return true
}

// HangUp sends SIGHUP to the daemon of a pidFile, so that it reads its settings again.
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

// DirReplaced reports whether dir was removed, or removed and created again,
// since a process started that has dir mounted at the path inside. It returns
// false if the process has ended.
func DirReplaced(files host.Files, pid int, dir, inside string) (bool, error) {
	sees, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", pid, inside))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !sees.IsDir() {
		return false, err
	}
	now, err := os.Stat(files.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && !os.SameFile(sees, now), err
}
