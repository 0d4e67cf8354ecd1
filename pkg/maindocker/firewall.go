package maindocker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// Since version 28 Docker drops packets from other hosts to ports of
// containers that are not published. These settings accept packets of the
// overlay:
//
//	iptables   DOCKER-USER, which Docker evaluates first and never empties, and
//	           PREROUTING of the table raw, to which Docker appends its rules
//	nftables   a mark that Docker accepts, set by a separate table
//
// https://docs.docker.com/engine/network/firewall-iptables/
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/command/config_unix.go#L42
//
// In the same places, further rules accept packets of pods: see podMatches.
//
// Docker's setting allow-direct-routing removes its rules in the table raw. Then
// each host of the LAN can reach a port that is published on 127.0.0.1, by the
// address of the container.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/libnetwork/drivers/bridge/internal/iptabler/endpoint.go#L59
const (
	acceptMark = "bridge-accept-fwmark"
	ourMark    = "0x20000/0x20000" // kube-proxy uses 0x4000 and 0x8000
	// commentMark begins the comment of each rule of kube-bootstrap, so that
	// outdated rules can be found.
	commentMark = "kube-bootstrap: "
	ourComment  = commentMark + "overlay to docker0"
	// With host-gw, packets of the hosts themselves are not tunnelled: their
	// source is a host address, not an overlay address.
	hostsComment = commentMark + "hosts to docker0"
	podsComment  = commentMark + "pods"
	nftTable     = "inet kube-bootstrap"
)

var (
	userChain = netfilter.Place{Table: "filter", Chain: "DOCKER-USER"}
	rawChain  = netfilter.Place{Table: "raw", Chain: "PREROUTING"}
)

// placesIn returns the chains of this kernel that contain rules of kube-bootstrap. Without the table
// raw, Docker drops nothing there.
func placesIn(chains *netfilter.Chains) []netfilter.Place {
	if chains.HasTable(rawChain.Table, rawChain.Chain) {
		return []netfilter.Place{userChain, rawChain}
	}
	return []netfilter.Place{userChain}
}

// firewall is a set of iptables rules or an nftables table.
type firewall struct {
	rules []netfilter.Rule
	table *netfilter.NftTable
}

// accept returns a rule in the words and the order of iptables-save.
func accept(at netfilter.Place, comment string, match ...string) netfilter.Rule {
	return netfilter.Rule{At: at, Spec: append(match, "-m", "comment", "--comment", comment, "-j", "ACCEPT")}
}

func acceptFrom(comment string, from netip.Prefix, to string) []netfilter.Rule {
	source := from.Masked().String()
	return []netfilter.Rule{
		accept(userChain, comment, "-s", source, "-d", to, "-o", linkName),
		accept(rawChain, comment, "-s", source, "-d", to),
	}
}

// firewallFor accepts the packets of the overlay. They arrive by link, or by the
// host's own interface if link is empty. hosts is the network of the hosts.
func firewallFor(link string, lease subnet.Lease, hosts netip.Prefix, daemon settings) firewall {
	if usesNftables(daemon) {
		mark, ok := daemon[acceptMark].(string)
		if !ok {
			mark = ourMark // which Move is about to write
		}
		return firewall{table: tableFor(link, lease, hosts, mark)}
	}
	return firewall{rules: append(overlayRules(link, lease, hosts), podRules(lease)...)}
}

func overlayRules(link string, lease subnet.Lease, hosts netip.Prefix) []netfilter.Rule {
	to := lease.Subnet.Masked().String()
	if link != "" {
		return []netfilter.Rule{
			accept(userChain, ourComment, "-i", link, "-o", linkName),
			accept(rawChain, ourComment, "-d", to, "-i", link),
		}
	}
	rules := acceptFrom(ourComment, lease.Network, to)
	if hosts.IsValid() {
		rules = append(rules, acceptFrom(hostsComment, hosts, to)...)
	}
	return rules
}

// podRules come after the rules of the user, who may refuse what Docker lets through.
func podRules(lease subnet.Lease) (rules []netfilter.Rule) {
	for _, m := range podMatches(lease) {
		r := accept(userChain, podsComment, strings.Fields(m.iptables)...)
		r.Last = true
		rules = append(rules, r)
	}
	return rules
}

// match selects packets, in the words of iptables and of nft(8).
type match struct{ iptables, nft string }

// podMatches select what Docker would drop because it does not know the pods, or because
// it does not masquerade docker0 (ip-masq):
//
//	pod ◀─▶ docker0               if "icc" is false, Docker drops what containers send one another
//	anywhere ─▶ pod               only what kube-proxy or the plugin portmap has translated: NodePorts, host ports
//	docker0 ─▶ another network    only what was translated: a port that a container there publishes. Docker leaves
//	                              it to its proxy only if it masquerades docker0
//	docker0 ◀─ another network    the answers
func podMatches(lease subnet.Lease) []match {
	pods := upperHalf(lease.Subnet).String()
	return []match{
		{"-s " + pods + " -i docker0 -o docker0", "ip saddr " + pods + ` iifname "docker0" oifname "docker0"`},
		{"-d " + pods + " -i docker0 -o docker0", "ip daddr " + pods + ` iifname "docker0" oifname "docker0"`},
		{"-d " + pods + " -o docker0 -m conntrack --ctstate DNAT",
			"ip daddr " + pods + ` oifname "docker0" ct status dnat`},
		{"-i docker0 -m conntrack --ctstate DNAT", `iifname "docker0" ct status dnat`},
		{"-o docker0 -m conntrack --ctstate DNAT --ctdir REPLY", `oifname "docker0" ct status dnat ct direction reply`},
	}
}

// tableFor sets the mark that Docker accepts. Only the chain forward sees packets that
// were translated, and the link by which they leave.
func tableFor(link string, lease subnet.Lease, hosts netip.Prefix, mark string) *netfilter.NftTable {
	from := fmt.Sprintf("iifname %q", link)
	if link == "" {
		sources := lease.Network.Masked().String()
		if hosts.IsValid() {
			sources = "{ " + sources + ", " + hosts.Masked().String() + " }"
		}
		from = fmt.Sprintf("ip saddr %s ip daddr %s", sources, lease.Subnet.Masked())
	}
	value, _, _ := strings.Cut(mark, "/")
	var pods []string
	for _, m := range podMatches(lease) {
		pods = append(pods, m.nft)
	}
	comment := fmt.Sprintf("%s %.6x", ourComment, sha256.Sum256([]byte(fmt.Sprint(from, pods, value))))
	chain := func(hook string, matches ...string) string {
		text := "\tchain " + hook + " {\n\t\ttype filter hook " + hook + " priority " + beforeDocker[hook] +
			"; policy accept;\n"
		for _, m := range matches {
			text += "\t\t" + m + " meta mark set meta mark or " + value + " comment \"" + comment + "\"\n"
		}
		return text + "\t}\n"
	}
	return &netfilter.NftTable{
		Name: nftTable, Body: chain("prerouting", from) + chain("forward", pods...), Comment: comment,
	}
}

// beforeDocker is the priority of a chain that precedes Docker's for the same hook.
var beforeDocker = map[string]string{"prerouting": "-310", "forward": "-10"}

func (f firewall) diff(ctx context.Context) (step.Diff, error) {
	rules, err := f.rulesDiff()
	if err != nil {
		return nil, err
	}
	table, err := f.tableDiff(ctx)
	return append(rules, table...), err
}

func (f firewall) rulesDiff() (diff step.Diff, err error) {
	chains, err := netfilter.ReadChains()
	if err != nil {
		return nil, err
	}
	for _, at := range placesIn(chains) {
		for _, r := range f.rulesOf(at) {
			has, err := chains.Has(r)
			if err != nil {
				return nil, err
			}
			if !has {
				diff = append(diff, "add rule "+at.Chain+" "+strings.Join(r.Spec, " "))
			}
		}
		others, err := chains.Others(at, commentMark, f.rulesOf(at))
		if err != nil {
			return nil, err
		}
		for _, text := range others {
			diff = append(diff, "delete rule "+at.Chain+" "+text)
		}
	}
	return diff, nil
}

func (f firewall) rulesOf(at netfilter.Place) []netfilter.Rule {
	return slices.DeleteFunc(slices.Clone(f.rules), func(r netfilter.Rule) bool { return r.At != at })
}

func (f firewall) tableDiff(ctx context.Context) (step.Diff, error) {
	if f.table == nil {
		tables, err := netfilter.NftTables(ctx)
		if err != nil || !slices.Contains(tables, nftTable) {
			return nil, err
		}
		return step.Diff{"delete table " + nftTable + " of nftables"}, nil
	}
	_, whole, err := netfilter.ReadNftTable(ctx, *f.table)
	if whole || err != nil {
		return nil, err
	}
	return step.Diff{"add table " + nftTable + " of nftables"}, nil
}

// apply sets the new rules or the new table before it removes those of the other kind, so that traffic is
// never interrupted.
func (f firewall) apply(ctx context.Context) error {
	if f.table != nil {
		return errors.Join(netfilter.SetNftTable(ctx, *f.table), f.setRules(ctx))
	}
	if err := f.setRules(ctx); err != nil {
		return err
	}
	return netfilter.DeleteNftTable(ctx, nftTable)
}

// setRules also deletes outdated rules.
func (f firewall) setRules(ctx context.Context) error {
	chains, err := netfilter.ReadChains()
	if err != nil {
		return err
	}
	return chains.SetRules(ctx, commentMark, f.rules, placesIn(chains)...)
}

// removeFirewall does not need the lease: it finds our rules by the prefix of
// their comments and our table by its name. Docker owns the chain.
func removeFirewall(ctx context.Context) error {
	left, err := Left()
	errs := []error{err, netfilter.UnreadProblem(), firewall{}.setRules(ctx), netfilter.DeleteNftTable(ctx, nftTable)}
	if len(left) > 0 {
		errs = append(errs, dropRawTable(ctx))
	}
	return errors.Join(errs...)
}

// dropRawTable removes the table raw if it is empty: iptables makes it with the
// first rule and never removes it.
func dropRawTable(ctx context.Context) error {
	tables, err := netfilter.NftTables(ctx)
	if table := "ip " + rawChain.Table; err == nil && slices.Contains(tables, table) {
		err = netfilter.DeleteEmptyNft(ctx, "table", []string{table})
	}
	return err
}

// Left lists our rules that remain.
func Left() (left []string, err error) {
	chains, err := netfilter.ReadChains()
	if err != nil {
		return nil, err
	}
	for _, at := range placesIn(chains) {
		rules, err := chains.Others(at, commentMark, nil)
		if err != nil {
			return left, err
		}
		for _, rule := range rules {
			left = append(left, "rule "+at.Chain+" "+rule)
		}
	}
	return left, nil
}
