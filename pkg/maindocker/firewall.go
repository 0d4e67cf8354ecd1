package maindocker

import (
	"context"
	"fmt"
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
	nftFamily  = "inet"
	nftName    = "kube-bootstrap"
)

// firewall is either one rule of iptables or one table of nftables.
type firewall struct {
	rule  *host.Rule
	table *host.NftTable
}

// overlayLinks names the interface by which a flannel backend's packets come
// in. host-gw has none: there they come by the host's own interface.
var overlayLinks = map[string]string{
	"vxlan": "flannel.1", "udp": "flannel0", "wireguard": "flannel-wg", "ipip": "flannel.ipip",
}

func firewallFor(backend string, lease Lease, daemon settings) firewall {
	if daemon["firewall-backend"] == "nftables" {
		mark, _ := daemon[acceptMark].(string)
		return firewall{table: tableFor(backend, lease, mark)}
	}
	spec := []string{"-i", overlayLinks[backend], "-o", linkName}
	if overlayLinks[backend] == "" {
		spec = []string{"-s", lease.Network.Masked().String(), "-d", lease.Subnet.Masked().String(), "-o", linkName}
	}
	spec = append(spec, "-m", "comment", "--comment", ourComment, "-j", "ACCEPT")
	return firewall{rule: &host.Rule{Table: "filter", Chain: "DOCKER-USER", Spec: spec}}
}

func tableFor(backend string, lease Lease, mark string) *host.NftTable {
	from := fmt.Sprintf("iifname %q", overlayLinks[backend])
	if overlayLinks[backend] == "" {
		from = fmt.Sprintf("ip saddr %s ip daddr %s", lease.Network.Masked(), lease.Subnet.Masked())
	}
	value, _, _ := strings.Cut(mark, "/")
	comment := ourComment + " " + strings.ReplaceAll(from, `"`, "") + " " + value
	body := "\tchain prerouting {\n\t\ttype filter hook prerouting priority -310; policy accept;\n" +
		"\t\t" + from + " meta mark set meta mark or " + value + " comment \"" + comment + "\"\n\t}"
	return &host.NftTable{Family: nftFamily, Name: nftName, Body: body, Comment: comment}
}

func (f firewall) diff(ctx context.Context) (step.Diff, error) {
	var has bool
	var err error
	what := "table " + nftFamily + " " + nftName + " of nftables"
	if f.rule != nil {
		what = "rule " + f.rule.Chain + " " + strings.Join(f.rule.Spec, " ")
		has, err = host.HasRule(*f.rule)
	} else {
		has, err = host.HasNftTable(ctx, *f.table)
	}
	if has || err != nil {
		return nil, err
	}
	return step.Diff{"add " + what}, nil
}

func (f firewall) apply(ctx context.Context) error {
	if f.table != nil {
		return host.SetNftTable(ctx, *f.table)
	}
	if err := host.DeleteRulesWithComment("filter", "DOCKER-USER", ourComment, f.rule); err != nil {
		return err // one for an earlier lease or backend
	}
	return host.InsertRule(*f.rule)
}

// removeFirewall needs no lease: our rule is known by its comment, our table
// by its name. The chain is Docker's.
func removeFirewall(ctx context.Context) error {
	if err := host.DeleteRulesWithComment("filter", "DOCKER-USER", ourComment, nil); err != nil {
		return err
	}
	return host.DeleteNftTable(ctx, nftFamily, nftName)
}
