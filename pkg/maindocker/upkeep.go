package maindocker

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Upkeep is the part of Move that needs no restart of Docker: the address of
// docker0 and the rules of the firewall. A docker0 that is missing is made by
// Docker, and before there is a lease nothing is wrong.
func (b Bridge) Upkeep() step.Step {
	return step.Step{Name: "keep docker0 and its firewall rules", Check: b.checkUpkeep, Apply: b.applyUpkeep}
}

func (b Bridge) checkUpkeep(ctx context.Context) (step.Diff, error) {
	lease, rules, err := b.kept()
	if err != nil {
		return nil, ignoreNoLease(err)
	}
	link, ok, err := host.FindLink(linkName)
	if err != nil || !ok {
		return nil, err
	}
	diff, err := rules.diff(ctx)
	return append(linkDiff(link, lease), diff...), err
}

func (b Bridge) applyUpkeep(ctx context.Context) error {
	lease, rules, err := b.kept()
	if err != nil {
		return ignoreNoLease(err)
	}
	return errors.Join(b.setLink(lease), rules.apply(ctx))
}

// kept returns what Upkeep wants. The settings of Docker stay as they are.
func (b Bridge) kept() (Lease, firewall, error) {
	lease, err := b.Lease()
	if err != nil {
		return lease, firewall{}, noLease{err}
	}
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil {
		return lease, firewall{}, err
	}
	return lease, firewallFor(b.Backend, lease, b.Hosts, now), nil
}

func ignoreNoLease(err error) error {
	if errors.As(err, new(noLease)) {
		return nil
	}
	return err
}
