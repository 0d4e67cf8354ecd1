// Package firewall permits the packets of the cluster in firewalld, a program that manages the
// firewall of a host. A rule elsewhere cannot do this: what the table of firewalld drops stays
// dropped. The rules are therefore part of its own configuration, and firewalld restores them.
//
//	hosts, everybody ──▶ ports of this host
//	pods, containers ──▶ everywhere
//	everywhere ────────▶ pods, containers   which Docker's own rules protect
package firewall

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// name is the name of the zone, and begins the names of the policies.
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

// Permit is the step that permits the packets in a firewalld that runs. Without one it does nothing.
func (a Access) Permit() step.Step {
	return step.Step{
		Name:  "permit the cluster in firewalld",
		Check: a.firewalldDiff,
		Apply: a.applyFirewalld,
		Undo:  a.undoFirewalld,
	}
}
