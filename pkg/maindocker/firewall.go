package maindocker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// From version 28 Docker drops what other hosts send to a container that has
// published no port. What comes by the overlay is let in:
//
//	iptables   DOCKER-USER, which Docker walks first and never empties
//	nftables   a mark that Docker accepts, set by a table of our own
const (
	acceptMark = "bridge-accept-fwmark"
	ourMark    = "0x20000/0x20000" // kube-proxy has 0x4000 and 0x8000
	// commentMark begins the comment of each of our rules, for every backend,
	// so that rules that are no longer wanted can be found.
	commentMark = "kube-bootstrap: "
	ourComment  = commentMark + "overlay to docker0"
	// With host-gw, packets of the hosts themselves are not tunnelled: their
	// source is a host address, not an overlay address.
	hostsComment = commentMark + "hosts to docker0"
	ruleTable    = "filter"
	ruleChain    = "DOCKER-USER"
	nftFamily    = "inet"
	nftName      = "kube-bootstrap"
)

// firewall is either rules of iptables or one table of nftables.
type firewall struct {
	rules []host.Rule
	table *host.NftTable
}

func accept(comment string, match ...string) host.Rule {
	spec := append(match, "-o", linkName, "-m", "comment", "--comment", comment, "-j", "ACCEPT")
	return host.Rule{Table: ruleTable, Chain: ruleChain, Spec: spec}
}

// overlayLinks names the interface by which a flannel backend's packets come
// in. host-gw has none: there they come by the host's own interface.
var overlayLinks = map[string]string{
	"vxlan": "flannel.1", "udp": "flannel0", "wireguard": "flannel-wg", "ipip": "flannel.ipip",
}

// firewallFor lets in what comes by the overlay. hosts is the network that the
// hosts themselves are in.
func firewallFor(backend string, lease Lease, hosts netip.Prefix, daemon settings) firewall {
	if daemon["firewall-backend"] == "nftables" {
		mark, ok := daemon[acceptMark].(string)
		if !ok {
			mark = ourMark // which Move is about to write
		}
		return firewall{table: tableFor(backend, lease, hosts, mark)}
	}
	if link := overlayLinks[backend]; link != "" {
		return firewall{rules: []host.Rule{accept(ourComment, "-i", link)}}
	}
	to := lease.Subnet.Masked().String()
	rules := []host.Rule{accept(ourComment, "-s", lease.Network.Masked().String(), "-d", to)}
	if hosts.IsValid() {
		rules = append(rules, accept(hostsComment, "-s", hosts.Masked().String(), "-d", to))
	}
	return firewall{rules: rules}
}

func tableFor(backend string, lease Lease, hosts netip.Prefix, mark string) *host.NftTable {
	from := fmt.Sprintf("iifname %q", overlayLinks[backend])
	if overlayLinks[backend] == "" {
		sources := lease.Network.Masked().String()
		if hosts.IsValid() {
			sources = "{ " + sources + ", " + hosts.Masked().String() + " }"
		}
		from = fmt.Sprintf("ip saddr %s ip daddr %s", sources, lease.Subnet.Masked())
	}
	value, _, _ := strings.Cut(mark, "/")
	comment := ourComment + " " + strings.NewReplacer(`"`, "", "{ ", "", " }", "", ",", "").Replace(from) + " " + value
	body := "\tchain prerouting {\n\t\ttype filter hook prerouting priority -310; policy accept;\n" +
		"\t\t" + from + " meta mark set meta mark or " + value + " comment \"" + comment + "\"\n\t}"
	return &host.NftTable{Family: nftFamily, Name: nftName, Body: body, Comment: comment}
}

func (f firewall) diff(ctx context.Context) (step.Diff, error) {
	rules, err := f.rulesDiff()
	if err != nil {
		return nil, err
	}
	table, err := f.tableDiff(ctx)
	return append(rules, table...), err
}

func (f firewall) rulesDiff() (step.Diff, error) {
	var diff step.Diff
	for _, r := range f.rules {
		has, err := host.HasRule(r)
		if err != nil {
			return nil, err
		}
		if !has {
			diff = append(diff, "add rule "+r.Chain+" "+strings.Join(r.Spec, " "))
		}
	}
	others, err := host.OtherRules(ruleTable, ruleChain, commentMark, f.rules)
	for _, text := range others {
		diff = append(diff, "delete rule "+ruleChain+" "+text)
	}
	return diff, err
}

func (f firewall) tableDiff(ctx context.Context) (step.Diff, error) {
	if f.table == nil {
		tables, err := host.NftTables(ctx)
		if err != nil || !slices.Contains(tables, nftFamily+" "+nftName) {
			return nil, err
		}
		return step.Diff{"delete table " + nftFamily + " " + nftName + " of nftables"}, nil
	}
	has, err := host.HasNftTable(ctx, *f.table)
	if has || err != nil {
		return nil, err
	}
	return step.Diff{"add table " + nftFamily + " " + nftName + " of nftables"}, nil
}

// apply adds the new rules before it deletes the old ones, so that traffic is
// never interrupted.
func (f firewall) apply(ctx context.Context) error {
	for _, r := range f.rules {
		if err := host.InsertRule(r); err != nil {
			return err
		}
	}
	if f.table == nil {
		return removeOthers(ctx, f.rules)
	}
	return errors.Join(host.SetNftTable(ctx, *f.table), host.DeleteOtherRules(ruleTable, ruleChain, commentMark, nil))
}

// removeFirewall does not need the lease: it finds our rules by the prefix of
// their comments and our table by its name. Docker owns the chain.
func removeFirewall(ctx context.Context) error { return removeOthers(ctx, nil) }

// Left lists our rules that remain.
func Left() (left []string, err error) {
	rules, err := host.OtherRules(ruleTable, ruleChain, commentMark, nil)
	for _, rule := range rules {
		left = append(left, "rule "+ruleChain+" "+rule)
	}
	return left, err
}

func removeOthers(ctx context.Context, wanted []host.Rule) error {
	return errors.Join(host.DeleteOtherRules(ruleTable, ruleChain, commentMark, wanted), host.DeleteNftTable(ctx, nftFamily, nftName))
}
