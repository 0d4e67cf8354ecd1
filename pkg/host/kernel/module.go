// Package kernel reads and changes the kernel: modules, settings, limits, reports.
package kernel

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// HasBridgeNetfilter reports whether the firewall sees bridged packets, by br_netfilter.
func HasBridgeNetfilter() bool {
	return host.Files{}.Exists("/proc/sys/net/bridge/bridge-nf-call-iptables")
}

// ModuleLoaded reports whether a module is loaded, or built in and has
// parameters: sysfs does not list other built-in modules.
func ModuleLoaded(name string) bool { return host.Files{}.Exists("/sys/module/" + name) }

// LoadModule loads a kernel module and its dependencies.
func LoadModule(ctx context.Context, name string) error {
	_, err := host.Run(ctx, "modprobe", name)
	return err
}

// ModulesOf lists the modules that LoadModule would load, dependencies first.
func ModulesOf(ctx context.Context, name string) ([]string, error) {
	text, err := host.Run(ctx, "modprobe", "-D", name) // "insmod /lib/modules/6.1/kernel/net/bridge/br_netfilter.ko.xz"
	var missing []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "insmod" {
			continue
		}
		file, _, _ := strings.Cut(filepath.Base(words[1]), ".ko")
		if module := strings.ReplaceAll(file, "-", "_"); !ModuleLoaded(module) {
			missing = append(missing, module)
		}
	}
	return missing, err
}

// Shared reports whether other hosts use this kernel, because this host is a container. The
// inode of the first PID namespace is a constant of Linux (PROC_PID_INIT_INO).
func Shared() bool {
	const first = 0xEFFFFFFC
	var stat unix.Stat_t
	return unix.Stat("/proc/self/ns/pid", &stat) == nil && stat.Ino != first
}

// OffersModule reports whether the kernel has the feature of a module: built
// in, loaded, or as a file. It loads nothing.
func OffersModule(ctx context.Context, name string) (bool, error) {
	if ModuleLoaded(name) || name == "br_netfilter" && HasBridgeNetfilter() || name == "tun" && hasTun() {
		return true, nil
	}
	if _, err := host.Run(ctx, "modprobe", "-n", "-q", name); err == nil {
		return true, nil
	}
	return makesLinks(name)
}

// hasTun reports whether the kernel has the tun device, which only this list shows.
func hasTun() bool {
	devices, err := os.ReadFile("/proc/misc")
	return err == nil && slices.Contains(strings.Fields(string(devices)), "tun")
}

// BootModules lists the kernel modules that the user's configuration loads at boot.
func BootModules(files host.Files) []string {
	var all []string
	for _, pattern := range []string{
		"/etc/modules", "/etc/modules-load.d/*.conf", "/usr/lib/modules-load.d/*.conf", "/run/modules-load.d/*.conf",
	} {
		for _, path := range files.Match(pattern) {
			data, _ := files.Read(path) // an unreadable file lists no modules
			all = append(all, strings.Fields(string(data))...)
		}
	}
	return all
}
