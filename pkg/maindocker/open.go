package maindocker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Open is the step that lets packets of the overlay into docker0: docker0 has
// the address of the lease, Docker's chains are complete, and the firewall
// accepts the overlay. Unlike Move, it does not change Docker's subnet.
func (b Bridge) Open() step.Step {
	return step.Step{
		Name:  "let the overlay into docker0",
		Check: b.checkOpen,
		Apply: b.open,
		Undo: func(ctx context.Context) error {
			return errors.Join(b.endRebuild(ctx), removeFirewall(ctx))
		},
	}
}

// opening is the state that Open establishes. It does not ask Docker which
// settings it supports, because that is too slow for a step that is checked
// often.
type opening struct {
	lease    Lease
	daemon   settings
	firewall firewall
}

func (b Bridge) opening() (opening, error) {
	lease, err := b.Lease()
	if err != nil {
		return opening{}, noLease{err}
	}
	now, err := readSettings(b.Files, daemonJSON)
	return opening{lease, now, firewallFor(b.Backend, lease, b.Hosts, now)}, err
}

func (b Bridge) checkOpen(ctx context.Context) (step.Diff, error) {
	g, err := b.opening()
	if errors.As(err, new(noLease)) {
		return step.Diff{"let the overlay into docker0, once this host's subnet is known (" + err.Error() + ")"}, nil
	}
	if err != nil {
		return nil, err
	}
	diff, err := b.chainsDiff(ctx, g)
	if err != nil {
		return nil, err
	}
	link, ok, err := host.FindLink(linkName)
	if err != nil {
		return nil, err
	}
	if ok { // Move creates a missing docker0
		diff = append(diff, linkDiff(link, g.lease)...)
	}
	rules, err := g.firewall.diff(ctx)
	return append(diff, rules...), err
}

func (b Bridge) open(ctx context.Context) error {
	g, err := b.opening()
	if err != nil {
		return err
	}
	if err := b.setLink(g.lease); err != nil {
		return err
	}
	if err := b.repairChains(ctx, g); err != nil {
		return err
	}
	return g.firewall.apply(ctx)
}

// repairChains restarts Docker only if the missing rules do not return by
// themselves, because a container may be starting or stopping.
func (b Bridge) repairChains(ctx context.Context, g opening) error {
	const patience = time.Second
	whole := func(ctx context.Context) error {
		diff, err := b.chainsDiff(ctx, g)
		if err == nil && len(diff) > 0 {
			err = errors.New(diff.String())
		}
		return err
	}
	if err := step.Until(step.WithLimit(ctx, patience), whole, nil); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return b.rebuild(ctx)
}

// chainsDiff lists the missing rules that Docker creates. Docker creates them
// at its start and does not check them later.
func (b Bridge) chainsDiff(ctx context.Context, g opening) (step.Diff, error) {
	var diff step.Diff
	if b.Files.Exists(rebuildFile) {
		diff = append(diff, "finish the restart of Docker, which rebuilds its firewall chains")
	}
	switch {
	case g.daemon["iptables"] == false:
		return diff, nil
	case g.firewall.table != nil:
		tables, err := host.NftTables(ctx)
		if err == nil && !slices.Contains(tables, dockerTable) {
			diff = append(diff, "have Docker rebuild the table "+dockerTable+" of nftables")
		}
		return diff, err
	}
	chains, err := host.ReadChains()
	if err != nil {
		return nil, err
	}
	missing, err := missingChains(chains)
	if err != nil {
		return nil, err
	}
	ports, err := b.missingPorts(ctx, chains)
	if missing = append(missing, ports...); err == nil && len(missing) > 0 {
		diff = append(diff, "have Docker rebuild its firewall chains, which lack "+strings.Join(missing, ", "))
	}
	return diff, err
}
