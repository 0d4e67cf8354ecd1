package netfilter

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// DeleteChainsEverywhere deletes the chains with that prefix, and the rules that jump to
// them, for IPv4 and IPv6, in both firewalls of the kernel: a container may use another
// one than the host.
func DeleteChainsEverywhere(ctx context.Context, prefix string) error {
	programs := iptablesPrograms()
	if len(programs) == 0 {
		return withoutIptables()
	}
	return host.Each(programs, func(p iptablesProgram) error {
		return deleteChains(ctx, p.path, func(chain string) bool { return strings.HasPrefix(chain, prefix) })
	})
}

// ChainsEverywhere lists the chains that DeleteChainsEverywhere would delete for any
// of the prefixes: "KUBE-SERVICES (table nat)".
func ChainsEverywhere(ctx context.Context, prefixes ...string) (found []string, err error) {
	programs := iptablesPrograms()
	if len(programs) == 0 {
		return nil, withoutIptables()
	}
	for _, p := range programs {
		rules, runErr := host.Run(ctx, p.path+"-save")
		err = errors.Join(err, runErr)
		for table, lines := range savedTables(rules) {
			for _, line := range lines {
				chain, is := savedChain(line)
				if is && slices.ContainsFunc(prefixes,
					func(prefix string) bool { return strings.HasPrefix(chain, prefix) }) {
					found = append(found, chain+" (table "+table+")")
				}
			}
		}
	}
	return found, err
}

type iptablesProgram struct {
	path   string
	proto  iptables.Protocol
	legacy string // the file in which the kernel lists the tables of ip_tables; empty for nftables
}

// has reports whether a table exists, which iptables-legacy would create by listing it.
func (p iptablesProgram) has(table string) bool {
	if p.legacy == "" {
		return true
	}
	names, err := os.ReadFile(p.legacy)
	return err == nil && slices.Contains(strings.Fields(string(names)), table)
}

func iptablesPrograms() []iptablesProgram {
	var found []iptablesProgram
	for name, family := range map[string]iptablesProgram{
		"iptables":  {proto: iptables.ProtocolIPv4, legacy: "/proc/net/ip_tables_names"},
		"ip6tables": {proto: iptables.ProtocolIPv6, legacy: "/proc/net/ip6_tables_names"},
	} {
		legacy := family
		legacy.path = name + "-legacy"
		modern := iptablesProgram{path: name + "-nft", proto: family.proto}
		if !host.HasProgram(modern.path) {
			modern.path = name
		}
		for _, p := range []iptablesProgram{modern, legacy} {
			if host.HasProgram(p.path) {
				found = append(found, p)
			}
		}
	}
	return found
}

// HasLegacyRules reports whether this host has tables of ip_tables, the older firewall.
func HasLegacyRules() bool {
	names, err := os.ReadFile("/proc/thread-self/net/ip_tables_names") // of the namespace that netlink shows too
	return err == nil && len(names) > 0
}
