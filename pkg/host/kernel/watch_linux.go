package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	netfilterGroup = 7         // NFNLGRP_NFTABLES
	noticeBuffer   = 64 << 10  // bytes; the longest message of the kernel
	socketBuffer   = 256 << 10 // bytes of queued messages
)

// WatchNetwork calls report for each change of links, addresses, routes and
// forwarding, and for each removed neighbour of a VXLAN link, until ctx ends. It
// ignores veth links, the links of containers.
func WatchNetwork(ctx context.Context, report func(Change)) error {
	groups := uint32(1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1) |
		1<<(unix.RTNLGRP_IPV4_NETCONF-1) | 1<<(unix.RTNLGRP_NEIGH-1))
	all := []Change{LinkChanged, RouteChanged, ForwardingChanged}
	return watchKernel(ctx, unix.NETLINK_ROUTE, groups, all, networkChange, report)
}

// WatchFirewall calls report whenever an nftables rule, chain or table is removed, until
// ctx ends. The kernel does not report changes of iptables-legacy.
func WatchFirewall(ctx context.Context, report func(Change)) error {
	return watchKernel(ctx, unix.NETLINK_NETFILTER, 1<<(netfilterGroup-1), []Change{RulesRemoved},
		firewallChange, report)
}

func networkChange(m syscall.NetlinkMessage) Change {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if !containerLink(m.Data) {
			return LinkChanged
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return LinkChanged
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return RouteChanged
	case unix.RTM_NEWNETCONF:
		return ForwardingChanged
	case unix.RTM_DELNEIGH:
		if onVXLAN(m.Data) {
			return RouteChanged
		}
	}
	return ""
}

// onVXLAN reports whether a message is about a neighbour of a VXLAN link. Others come
// and go with each container.
func onVXLAN(data []byte) bool {
	const index = 4 // offset of ndm_ifindex in struct ndmsg of rtnetlink
	if len(data) < index+4 {
		return false
	}
	link, err := netlink.LinkByIndex(int(int32(binary.NativeEndian.Uint32(data[index:]))))
	return err == nil && link.Type() == "vxlan"
}

// containerLink reports whether a message is about a veth link, one of a container.
func containerLink(data []byte) bool {
	if len(data) < unix.SizeofIfInfomsg {
		return false
	}
	attributes, err := nl.ParseRouteAttr(data[unix.SizeofIfInfomsg:])
	return err == nil && slices.ContainsFunc(attributes, func(a syscall.NetlinkRouteAttr) bool {
		return a.Attr.Type == unix.IFLA_IFNAME && strings.HasPrefix(string(a.Value), "veth")
	})
}

func firewallChange(m syscall.NetlinkMessage) Change {
	if m.Header.Type>>8 != unix.NFNL_SUBSYS_NFTABLES {
		return ""
	}
	switch m.Header.Type & 0xff {
	case unix.NFT_MSG_DELTABLE, unix.NFT_MSG_DELCHAIN, unix.NFT_MSG_DELRULE:
		return RulesRemoved
	}
	return ""
}

// watchKernel calls report with the change that what finds in each message, and with all
// of them if the kernel dropped messages because the socket buffer was full.
func watchKernel(
	ctx context.Context, protocol int, groups uint32, all []Change, what func(syscall.NetlinkMessage) Change,
	report func(Change),
) error {
	socket, err := subscribe(protocol, groups)
	if err != nil {
		return err
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Now()) })()
	for buffer := make([]byte, noticeBuffer); ; {
		n, err := socket.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENOBUFS):
			for _, change := range all {
				report(change)
			}
			continue
		case err != nil:
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			if change := what(m); change != "" {
				report(change)
			}
		}
	}
}

// subscribe returns a netlink socket as a file, whose reads respect a deadline.
func subscribe(protocol int, groups uint32) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}
