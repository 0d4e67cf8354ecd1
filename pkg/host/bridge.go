package host

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// BridgePorts reports of each link of this host whether it is on a bridge; ok
// is false if there is no such bridge.
func BridgePorts(bridge string) (ports map[string]bool, ok bool, err error) {
	b, err := netlink.LinkByName(bridge)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	all, err := netlink.LinkList()
	ports = map[string]bool{}
	for _, l := range all {
		ports[l.Attrs().Name] = l.Attrs().MasterIndex == b.Attrs().Index
	}
	return ports, err == nil, err
}

// AttachToBridge puts a link on a bridge. Packets may leave by the port that
// they came in by: a pod reaches itself by a Service.
func AttachToBridge(name, bridge string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	b, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", bridge, err)
	}
	if err := netlink.LinkSetMaster(link, b); err != nil {
		return fmt.Errorf("attach %s to %s: %w", name, bridge, err)
	}
	return errors.Join(netlink.LinkSetHairpin(link, true), netlink.LinkSetUp(link))
}
