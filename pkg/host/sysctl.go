package host

import (
	"os"
	"strings"
)

// Sysctl returns a kernel setting, "net.ipv4.ip_forward"; ok is false if this
// kernel does not have it or does not show it.
func (f Files) Sysctl(name string) (value string, ok bool) {
	data, err := f.Read(sysctlPath(name))
	return strings.TrimSpace(string(data)), err == nil
}

// SetSysctl changes a kernel setting.
func (f Files) SetSysctl(name, value string) error {
	return os.WriteFile(f.Path(sysctlPath(name)), []byte(value+"\n"), 0o644)
}

// sysctlPath knows a name as sysctl(8) does: a slash in it is a dot of a link's
// name.
func sysctlPath(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
