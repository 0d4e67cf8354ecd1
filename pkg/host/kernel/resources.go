package kernel

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// MemoryAvailable returns MemAvailable of /proc/meminfo in bytes.
func MemoryAvailable() (int64, error) { return memory("MemAvailable") }

// MemoryTotal returns MemTotal of /proc/meminfo in bytes.
func MemoryTotal() (int64, error) { return memory("MemTotal") }

func memory(field string) (int64, error) {
	table, err := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(table)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			var kib int64
			_, err := fmt.Sscan(value, &kib)
			return kib << 10, err
		}
	}
	return 0, cmp.Or(err, fmt.Errorf("/proc/meminfo has no %s", field))
}

// SwapOn reports whether this machine uses swap.
func SwapOn() bool {
	data, err := os.ReadFile("/proc/swaps")
	return err == nil && bytes.Count(data, []byte("\n")) > 1 // the first line is the header
}

// CgroupV2 reports whether the host uses the unified cgroup hierarchy.
func CgroupV2() bool { return host.Files{}.Exists("/sys/fs/cgroup/cgroup.controllers") }

// HasCgroup reports whether the kernel offers a cgroup controller, in v1 or v2.
func HasCgroup(controller string) bool {
	if data, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return slices.Contains(strings.Fields(string(data)), controller)
	}
	table, _ := os.ReadFile("/proc/cgroups") // a kernel without cgroups has no such file
	return slices.ContainsFunc(strings.Split(string(table), "\n"), func(line string) bool {
		f := strings.Fields(line) // name, hierarchy, cgroups, enabled
		return len(f) == 4 && f[0] == controller && f[3] == "1"
	})
}

// Sysctl returns a setting such as "net.ipv4.ip_forward"; ok is false if it cannot be read.
func Sysctl(files host.Files, name string) (value string, ok bool) {
	data, err := files.Read(sysctlPath(name))
	return strings.TrimSpace(string(data)), err == nil
}

// SetSysctl changes a kernel setting.
func SetSysctl(files host.Files, name, value string) error {
	return os.WriteFile(files.Path(sysctlPath(name)), []byte(value+"\n"), 0o644)
}

// sysctlPath returns a file. As in sysctl(8), a slash is a dot in the name of an interface.
func sysctlPath(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
