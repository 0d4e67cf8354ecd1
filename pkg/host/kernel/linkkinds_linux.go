package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

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
