package host

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// BridgePorts reports for each link of this host whether it is a port of the
// bridge. ok is false if the bridge does not exist.
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

// AttachToBridge makes a link a port of a bridge, in hairpin mode: packets
// may leave by the port they came in by, as when a pod reaches itself through
// a Service.
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
