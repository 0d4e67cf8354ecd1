// Package kernel reads and changes the kernel: modules, settings, limits, reports.
package kernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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

// UnloadModule unloads a kernel module, unless it is in use. Unlike modprobe
// -r, it does not unload dependencies, such as the module bridge.
func UnloadModule(name string) error {
	if used, err := linkKindUsed(name); used || err != nil {
		return step.Wrap(err, "look for links that need it")
	}
	err := unix.DeleteModule(name, unix.O_NONBLOCK)
	if slices.Contains([]error{unix.ENOENT, unix.EAGAIN, unix.EBUSY}, err) {
		return nil // not loaded, or in use by another module or an open file
	}
	if err != nil {
		return &os.PathError{Op: "unload kernel module", Path: name, Err: err}
	}
	return nil
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

// makesLinks reports whether the kernel can create a link of a kind, in a network
// namespace that ends with the thread. It must not make the kernel load a module.
func makesLinks(kind string) (ok bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends here
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "probe"
		refused := netlink.LinkAdd(&netlink.GenericLink{LinkAttrs: attrs, LinkType: kind})
		ok = !errors.Is(refused, unix.EOPNOTSUPP) // every other error comes from the driver of the kind
	}()
	<-done
	return ok, err
}

// linkKindUsed reports whether a link of a kind exists in any network namespace. The
// kernel would unload the module anyway, and delete the links.
func linkKindUsed(kind string) (bool, error) {
	seen := map[uint64]bool{}
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/run/netns/*", "/run/docker/netns/*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			var stat unix.Stat_t
			if unix.Stat(path, &stat) != nil || seen[stat.Ino] {
				continue
			}
			seen[stat.Ino] = true
			if used, err := linkKindIn(path, kind); used || err != nil {
				return used, err
			}
		}
	}
	return false, nil
}

// linkKindIn returns false for a file that is not a namespace: Docker leaves a plain file in
// /run/docker/netns when the start of a container is cut off.
func linkKindIn(namespace, kind string) (bool, error) {
	var fs unix.Statfs_t
	if unix.Statfs(namespace, &fs) != nil || fs.Type != unix.NSFS_MAGIC {
		return false, nil
	}
	ns, err := netns.GetFromPath(namespace)
	if err != nil {
		return false, nil // the namespace was deleted meanwhile
	}
	defer ns.Close()
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		return false, err
	}
	defer handle.Close()
	links, err := handle.LinkList()
	return slices.ContainsFunc(links, func(l netlink.Link) bool {
		return l.Type() == kind && l.Attrs().Name != "tunl0" // the module ipip creates tunl0 in every namespace
	}), err
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
