// Package process examines and ends processes of this machine, and limits the memory
// of the calling one.
package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// End ends the processes whose arguments meant accepts. It waits for patience,
// sends SIGTERM, waits again, and sends SIGKILL. It ignores processes in other
// PID namespaces, that is, in containers.
func End(ctx context.Context, patience time.Duration, meant func(args []string) bool) error {
	for _, signal := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
		for _, pid := range processes(meant) {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		gone := step.Until(step.WithLimit(ctx, patience), func(context.Context) error {
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

// processes returns the IDs of the processes that meant accepts. A process
// that has ended, or is a zombie, has no arguments.
func processes(meant func(args []string) bool) (pids []int) {
	ours, _ := os.Readlink("/proc/self/ns/pid")
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, path := range found {
		line, err := os.ReadFile(path)
		if err != nil || len(line) == 0 || !meant(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")) {
			continue
		}
		dir := filepath.Dir(path)
		if theirs, err := os.Readlink(dir + "/ns/pid"); err == nil && theirs == ours {
			pid, _ := strconv.Atoi(filepath.Base(dir)) // digits
			pids = append(pids, pid)
		}
	}
	return pids
}

// Runs reports whether a process runs the executable at path, and whether
// that executable is still the file at path.
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
