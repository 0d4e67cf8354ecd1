package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// EndProcesses ends the processes of this host whose program and arguments are
// meant: it gives them that long to go by themselves, asks them to, and then
// kills them. Those in containers, where another init reigns, are not looked at.
func EndProcesses(ctx context.Context, patience time.Duration, meant func(args []string) bool) error {
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

// processes are the ids of those that are meant. One that has ended meanwhile,
// or that nobody has reaped yet, has no arguments.
func processes(meant func(args []string) bool) (pids []int) {
	ours, _ := os.Readlink("/proc/self/ns/pid")
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is sound
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

// Runs reports whether a process runs the program at path, and whether that is
// the file that is there now.
func (f Files) Runs(pid int, path string) (runs, current bool) {
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	target, err := os.Readlink(exe)
	if err != nil || strings.TrimSuffix(target, " (deleted)") != f.Path(path) {
		return false, false
	}
	now, err := os.Stat(exe)
	if err != nil {
		return false, false
	}
	installed, err := os.Stat(f.Path(path))
	return true, err == nil && os.SameFile(now, installed)
}
