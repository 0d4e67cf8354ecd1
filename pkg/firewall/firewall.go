// Package firewall permits the packets of the cluster in firewalld and ufw, the programs that
// manage the firewall of a host. A rule elsewhere cannot do this: what the table of firewalld
// or the policy of ufw drops stays dropped. The rules are therefore part of their own
// configuration, and each program restores them.
//
//	hosts, everybody ──▶ ports of this host
//	pods, containers ──▶ everywhere
//	everywhere ────────▶ pods, containers   which Docker's own rules protect
package firewall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// name is the name of the zone, the policies and the comments.
const name = "kube-bootstrap"

// Files are the files of kube-bootstrap in the configuration of firewalld.
var Files = []string{toHostFile, toPodsFile, zoneFile}

// Access is what the firewall of a host permits.
type Access struct {
	Files host.Files
	Units initsystem.Units
	Pods  netip.Prefix // network of pods and containers
	Ports []Port       // of this host
}

// Port is a port of TCP or UDP.
type Port struct {
	Number   int
	Protocol string // "tcp" or "udp"
}

// String returns the port in the words of firewalld: "6443/tcp".
func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Number, p.Protocol) }

func sorted(ports []Port) []Port {
	return slices.SortedFunc(slices.Values(ports), func(a, b Port) int {
		return cmp.Or(strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
}

// Permit is the step that permits the packets in the program that runs. Without one it
// does nothing.
func (a Access) Permit() step.Step {
	return step.Step{
		ID: "firewall", Name: "permit the cluster in firewalld and ufw",
		Check: func(ctx context.Context) (step.Diff, error) {
			fromFirewalld, err := a.firewalldDiff(ctx)
			fromUFW, ufwErr := a.ufwDiff()
			return append(fromFirewalld, fromUFW...), errors.Join(err, ufwErr)
		},
		Apply: func(ctx context.Context) error { return errors.Join(a.applyFirewalld(ctx), a.applyUFW(ctx)) },
		Undo:  func(ctx context.Context) error { return errors.Join(a.undoFirewalld(ctx), a.undoUFW(ctx)) },
	}
}
