package host

import (
	"os"
	"strings"
)

// Sysctl returns a kernel setting such as "net.ipv4.ip_forward". ok is false
// if it cannot be read, for example because this kernel does not have it.
func (f Files) Sysctl(name string) (value string, ok bool) {
	data, err := f.Read(sysctlPath(name))
	return strings.TrimSpace(string(data)), err == nil
}

// SetSysctl changes a kernel setting.
func (f Files) SetSysctl(name, value string) error {
	return os.WriteFile(f.Path(sysctlPath(name)), []byte(value+"\n"), 0o644)
}

// sysctlPath returns the file of a setting. As in sysctl(8), a slash in the
// name is a dot in the name of an interface.
func sysctlPath(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
