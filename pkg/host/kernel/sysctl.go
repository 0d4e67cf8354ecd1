package kernel

import (
	"os"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Sysctl returns a kernel setting such as "net.ipv4.ip_forward". ok is false
// if it cannot be read, for example because this kernel does not have it.
func Sysctl(files host.Files, name string) (value string, ok bool) {
	data, err := files.Read(sysctlPath(name))
	return strings.TrimSpace(string(data)), err == nil
}

// SetSysctl changes a kernel setting.
func SetSysctl(files host.Files, name, value string) error {
	return os.WriteFile(files.Path(sysctlPath(name)), []byte(value+"\n"), 0o644)
}

// sysctlPath returns the file of a setting. As in sysctl(8), a slash in the
// name is a dot in the name of an interface.
func sysctlPath(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
