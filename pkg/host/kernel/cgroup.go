package kernel

import (
	"os"
	"slices"
	"strings"
)

// CgroupV2 reports whether the host uses the unified cgroup hierarchy.
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
