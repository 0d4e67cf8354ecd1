package host

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// HostName returns the host name in lower case, as a node is named.
func HostName() (string, error) {
	name, err := os.Hostname()
	return strings.ToLower(name), err
}

// PortFree returns an error if another process listens on the TCP port of the address.
// The address 0.0.0.0 stands for all addresses. Other errors do not mean that the port is
// in use: only root may listen on a low port, and an address may come later.
func PortFree(addr netip.AddrPort) error {
	l, err := net.Listen("tcp", addr.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	if err == nil {
		_ = l.Close()
	}
	return nil
}

// InContainer reports whether this machine is a container, by the marks of Docker and systemd.
func InContainer() bool {
	if _, err := os.Stat("/.dockerenv"); err == nil {
		return true
	}
	env, err := os.ReadFile("/proc/1/environ")
	return err == nil && bytes.Contains(env, []byte("container="))
}

// ProgramDirs are the directories of executables of distributions and Docker's packages.
var ProgramDirs = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin", "/opt/bin"}

// FindProgram returns the path of an executable in ProgramDirs, or "".
func FindProgram(files Files, name string) string {
	for _, dir := range ProgramDirs {
		if path := filepath.Join(dir, name); files.Exists(path) {
			return path
		}
	}
	return ""
}

// CompletePath adds the missing ProgramDirs to PATH, for this process and its children: the
// PATH of a plain `su`, or of cron, lacks the directories of iptables and modprobe.
func CompletePath() {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, dir := range ProgramDirs {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	_ = os.Setenv("PATH", strings.Join(dirs, string(filepath.ListSeparator))) // no name and no value that it refuses
}

// SetUmask replaces the umask of the user, for this process and its children: directories of
// a host such as /etc/cni and /opt/cni have a fixed mode, and secrets get theirs explicitly.
func SetUmask() { syscall.Umask(0o022) }

// HasProgram reports whether PATH contains an executable.
func HasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// ProgramIdentity returns the identity of an executable in PATH.
func ProgramIdentity(name string) Identity {
	path, err := exec.LookPath(name)
	if err != nil {
		return Identity{}
	}
	return Identities(Files{}, path)[0]
}
