package links

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	scopeNowhere = netlink.SCOPE_NOWHERE
	scopeLink    = netlink.SCOPE_LINK
	permanent    = netlink.NUD_PERMANENT
	bridgeFamily = unix.AF_BRIDGE
)

var errInterrupted = netlink.ErrDumpInterrupted
