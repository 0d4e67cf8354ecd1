package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// EndCgroup kills the processes in a cgroup, then removes it as RemoveCgroup does.
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
				return nil // the cgroup was removed meanwhile
			}
			data, _ := os.ReadFile(path)
			for _, word := range strings.Fields(string(data)) {
				// cgroup.procs lists a process of another PID namespace as 0, which
				// kill(2) would take for the own process group.
				if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
					pids = append(pids, pid)
				}
			}
			return nil
		})
	}
	return pids
}

// cgroupRoots returns the directories of a cgroup in all hierarchies.
func cgroupRoots(name string) []string {
	unified, _ := filepath.Glob("/sys/fs/cgroup/" + name) // both patterns are well-formed
	separate, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	return append(unified, separate...)
}

// RemoveCgroup removes an empty cgroup and its children from every hierarchy.
func RemoveCgroup(name string) error { return host.Each(cgroupRoots(name), removeCgroupTree) }

func removeCgroupTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a hierarchy with two names, such as cpu and cpu,cpuacct
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
