package netfilter

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// families contains the names of nft(8) for the families of tables.
var families = map[byte]string{
	unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_ARP: "arp",
	unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_IPV6: "ip6",
}

// unsupported are the errors of a kernel without nf_tables.
var unsupported = []error{unix.EINVAL, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT}

// kernelTables lists the tables of nftables, "ip filter". It asks the kernel, because a host
// without nft(8) may have the tables of a program in a container.
func kernelTables() (names []string, supported bool, err error) {
	messages, err := dumpTables()
	if slices.ContainsFunc(unsupported, func(refusal error) bool { return errors.Is(err, refusal) }) {
		return nil, false, nil
	}
	for _, message := range messages {
		family, attributes := message[0], message[nl.SizeofNfgenmsg:]
		all, err := nl.ParseRouteAttr(attributes)
		if err != nil {
			return nil, true, err
		}
		for _, a := range all {
			if a.Attr.Type == unix.NFTA_TABLE_NAME {
				names = append(names,
					cmp.Or(families[family], "unknown")+" "+strings.TrimRight(string(a.Value), "\x00"))
			}
		}
	}
	return names, true, err
}

// dumpTables repeats a dump during which another program has changed a table.
func dumpTables() (messages [][]byte, err error) {
	const tries = 10
	for range tries {
		ask := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE, unix.NLM_F_DUMP)
		ask.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_UNSPEC, Version: nl.NFNETLINK_V0})
		if messages, err = ask.Execute(unix.NETLINK_NETFILTER, 0); !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return messages, err
}
