package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// CgroupV2 reports whether the unified hierarchy is the one in use.
func CgroupV2() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}

// HasCgroup reports whether the kernel offers a cgroup controller, in either
// version of the hierarchy.
func HasCgroup(controller string) bool {
	if data, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return slices.Contains(strings.Fields(string(data)), controller)
	}
	data, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return false
	}
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line) // name, hierarchy, cgroups, enabled
		if len(f) == 4 && f[0] == controller {
			return f[3] == "1"
		}
	}
	return false
}

// EndCgroup removes the control group of that name as RemoveCgroup does, and
// kills what still runs in it.
func EndCgroup(ctx context.Context, name string) error {
	return step.Until(ctx, func(context.Context) error {
		for _, pid := range cgroupProcesses(name) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		return RemoveCgroup(name)
	}, nil)
}

func cgroupProcesses(name string) (pids []int) {
	for _, root := range cgroupRoots(name) {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != "cgroup.procs" {
				return nil // a group that has gone meanwhile has no processes
			}
			data, _ := os.ReadFile(path)
			for _, word := range strings.Fields(string(data)) {
				// Zero is one of another process namespace, and all of ours to kill(2).
				if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
					pids = append(pids, pid)
				}
			}
			return nil
		})
	}
	return pids
}

// cgroupRoots is the group of that name in every hierarchy.
func cgroupRoots(name string) (roots []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		found, _ := filepath.Glob(pattern) // the pattern is sound
		roots = append(roots, found...)
	}
	return roots
}

// RemoveCgroup removes the control group of that name, and those below it,
// from every hierarchy. One that still has processes is an error.
func RemoveCgroup(name string) error {
	var errs []error
	for _, root := range cgroupRoots(name) {
		errs = append(errs, removeCgroupTree(root))
	}
	return errors.Join(errs...)
}

func removeCgroupTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // one hierarchy under two names: cpu is cpu,cpuacct
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroupTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
