package host

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
)

// HasBridgeNetfilter reports whether bridged packets pass the firewall: the
// kernel module br_netfilter is there.
func HasBridgeNetfilter() bool {
	_, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables")
	return err == nil
}

// ModuleLoaded reports whether a module is in the kernel now. One that was
// built in and has no settings cannot be seen.
func ModuleLoaded(name string) bool {
	_, err := os.Stat(filepath.Join("/sys/module", name))
	return err == nil
}

// LoadModule loads a kernel module, with what it depends on.
func LoadModule(ctx context.Context, name string) error {
	_, err := Run(ctx, "modprobe", name)
	return err
}

// ModulesOf lists what LoadModule would load that is not in the kernel, each
// after what it depends on.
func ModulesOf(ctx context.Context, name string) ([]string, error) {
	text, err := Run(ctx, "modprobe", "-D", name) // "insmod /lib/modules/6.1/kernel/net/bridge/br_netfilter.ko.xz"
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

// UnloadModule takes a module out of the kernel, unless somebody uses it. The
// program modprobe would go on to what it depends on, docker0's bridge too.
func UnloadModule(name string) error {
	if used, err := linkKindUsed(name); used || err != nil {
		return err
	}
	err := unix.DeleteModule(name, unix.O_NONBLOCK)
	if slices.Contains([]error{unix.ENOENT, unix.EAGAIN, unix.EBUSY}, err) {
		return nil // gone, or another module or an open file holds it
	}
	if err != nil {
		return &os.PathError{Op: "unload kernel module", Path: name, Err: err}
	}
	return nil
}

// OffersModule reports whether the kernel has what a module brings: built in,
// loaded, or on disk. It loads nothing.
func OffersModule(ctx context.Context, name string) (bool, error) {
	if ModuleLoaded(name) || name == "br_netfilter" && HasBridgeNetfilter() || name == "tun" && hasTun() {
		return true, nil
	}
	if _, err := Run(ctx, "modprobe", "-n", "-q", name); err == nil {
		return true, nil
	}
	return makesLinks(name)
}

// hasTun looks at the list of character devices: tun's makes no other trace.
func hasTun() bool {
	devices, err := os.ReadFile("/proc/misc")
	return err == nil && slices.Contains(strings.Fields(string(devices)), "tun")
}

// makesLinks makes a link of that kind where nobody sees it: in a network
// namespace that ends with the thread. It is asked last, when there is no
// module that the kernel could load for it.
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
		ok = !errors.Is(refused, unix.EOPNOTSUPP) // any other answer comes from the kind itself
	}()
	<-done
	return ok, err
}

// linkKindUsed reports whether any network namespace of this machine has a link
// of that kind: a module lets go of its links when it is unloaded.
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

func linkKindIn(namespace, kind string) (bool, error) {
	ns, err := netns.GetFromPath(namespace)
	if err != nil {
		return false, nil // ended meanwhile
	}
	defer ns.Close()
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		return false, err
	}
	defer handle.Close()
	links, err := handle.LinkList()
	return slices.ContainsFunc(links, func(l netlink.Link) bool {
		return l.Type() == kind && l.Attrs().Name != "tunl0" // which ipip itself puts into every namespace
	}), err
}

// BootModules lists the kernel modules that the owner has loaded at every boot.
func (f Files) BootModules() []string {
	var all []string
	for _, pattern := range []string{"/etc/modules", "/etc/modules-load.d/*.conf", "/usr/lib/modules-load.d/*.conf", "/run/modules-load.d/*.conf"} {
		for _, path := range f.Match(pattern) {
			data, _ := f.Read(path) // one that cannot be read names none
			all = append(all, strings.Fields(string(data))...)
		}
	}
	return all
}
