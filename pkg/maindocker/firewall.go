package maindocker

import (
	"context"
	"fmt"
	"net/netip"
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
	ourComment = "kube-bootstrap: overlay to docker0"
	// With host-gw the hosts' own packets come without a tunnel, from the
	// hosts' addresses and not from the overlay's.
	hostsComment = "kube-bootstrap: hosts to docker0"
	nftFamily    = "inet"
	nftName      = "kube-bootstrap"
)

// firewall is either rules of iptables or one table of nftables.
type firewall struct {
	rules []markedRule
	table *host.NftTable
}

// markedRule is a rule that is known as ours by its comment.
type markedRule struct {
	host.Rule
	comment string
}

func accept(comment string, match ...string) markedRule {
	spec := append(match, "-o", linkName, "-m", "comment", "--comment", comment, "-j", "ACCEPT")
	return markedRule{host.Rule{Table: "filter", Chain: "DOCKER-USER", Spec: spec}, comment}
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
		mark, _ := daemon[acceptMark].(string)
		return firewall{table: tableFor(backend, lease, hosts, mark)}
	}
	if link := overlayLinks[backend]; link != "" {
		return firewall{rules: []markedRule{accept(ourComment, "-i", link)}}
	}
	to := lease.Subnet.Masked().String()
	rules := []markedRule{accept(ourComment, "-s", lease.Network.Masked().String(), "-d", to)}
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
	if f.table != nil {
		has, err := host.HasNftTable(ctx, *f.table)
		if has || err != nil {
			return nil, err
		}
		return step.Diff{"add table " + nftFamily + " " + nftName + " of nftables"}, nil
	}
	var diff step.Diff
	for _, r := range f.rules {
		has, err := host.HasRule(r.Rule)
		if err != nil {
			return nil, err
		}
		if !has {
			diff = append(diff, "add rule "+r.Chain+" "+strings.Join(r.Spec, " "))
		}
	}
	return diff, nil
}

func (f firewall) apply(ctx context.Context) error {
	if f.table != nil {
		return host.SetNftTable(ctx, *f.table)
	}
	for _, r := range f.rules {
		// One for an earlier lease or backend goes.
		if err := host.DeleteRulesWithComment(r.Table, r.Chain, r.comment, &r.Rule); err != nil {
			return err
		}
		if err := host.InsertRule(r.Rule); err != nil {
			return err
		}
	}
	return nil
}

// removeFirewall needs no lease: our rule is known by its comment, our table
// by its name. The chain is Docker's.
func removeFirewall(ctx context.Context) error {
	for _, comment := range []string{ourComment, hostsComment} {
		if err := host.DeleteRulesWithComment("filter", "DOCKER-USER", comment, nil); err != nil {
			return err
		}
	}
	return host.DeleteNftTable(ctx, nftFamily, nftName)
}
