package links

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/vishvananda/netlink"
)

// DeleteInto deletes the veth interfaces whose peers are in the network namespace
// at path. A path that is not a namespace, for example after a boot, has none.
//
// The kernel deletes them with the namespace, but it keeps a namespace while a
// closed connection in it waits for an answer: up to 102 s (tcp_orphan_retries).
func DeleteInto(path string) error {
	namespace, err := os.Open(path)
	if err != nil {
		return err
	}
	defer namespace.Close()
	id, err := netlink.GetNetNsIdByFd(int(namespace.Fd()))
	if errors.Is(err, syscall.EINVAL) || err == nil && id < 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	all, err := consistent(netlink.LinkList)
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range all {
		if l.Type() == "veth" && l.Attrs().NetNsID == id {
			errs = append(errs, Delete(l.Attrs().Name))
		}
	}
	return errors.Join(errs...)
}
