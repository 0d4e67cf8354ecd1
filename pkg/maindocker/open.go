package maindocker

import (
	"context"
	"errors"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// Overlay is flannel's network, whose packets docker0 gets.
type Overlay struct {
	Docker Daemon
	Lease  func() (subnet.Lease, error)
	Link   string       // by which its packets arrive; "": the host's interface
	Hosts  netip.Prefix // network of the hosts, whose packets arrive without a Link
}

// OverlayID identifies Overlay.Open.
const OverlayID step.ID = "overlay"

// Open is the step that lets packets of the overlay into docker0: docker0 has
// the address of the lease, Docker's chains are complete, and the firewall
// accepts the overlay. Unlike Move, it does not change Docker's subnet, and
// does not ask Docker which settings it supports, because that is too slow for
// a step that is checked often.
func (o Overlay) Open() step.Step {
	return step.Step{
		ID: OverlayID, Name: "let the overlay into docker0",
		Check: o.check,
		Apply: o.open,
		Undo: func(ctx context.Context) error {
			return errors.Join(o.Docker.endRebuild(ctx), removeFirewall(ctx))
		},
	}
}

func (o Overlay) check(ctx context.Context) (step.Diff, error) {
	lease, err := o.Lease()
	if err != nil {
		return step.Diff{"let the overlay into docker0, once this host's subnet is known (" + err.Error() + ")"}, nil
	}
	now, err := readSettings(o.Docker.Files)
	if err != nil {
		return nil, err
	}
	diff, err := o.Docker.chainsDiff(ctx, now)
	if err != nil {
		return nil, err
	}
	link, ok, err := links.Find(linkName)
	if err != nil {
		return nil, err
	}
	if ok { // Move creates a missing docker0
		diff = append(diff, linkDiff(link, lease)...)
	}
	rules, err := firewallFor(o.Link, lease, o.Hosts, now).diff(ctx)
	return append(diff, rules...), err
}

func (o Overlay) open(ctx context.Context) error {
	lease, err := o.Lease()
	if err != nil {
		return err
	}
	now, err := readSettings(o.Docker.Files)
	if err != nil {
		return err
	}
	if err := setLink(lease); err != nil {
		return err
	}
	if err := o.Docker.repairChains(ctx, now); err != nil {
		return err
	}
	return errors.Join(firewallFor(o.Link, lease, o.Hosts, now).apply(ctx), keepPolicy(o.Docker.Files))
}
