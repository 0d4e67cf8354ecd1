package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// CleanLosses lists what Clean removes for good: hosts and snapshots. Remains of
// an interrupted run are no loss.
func CleanLosses(ctx context.Context, options Options) (losses []string, err error) {
	err = withCluster(ctx, options, func(f *fleet) error {
		losses, err = f.losses(ctx, func(string) bool { return true })
		return err
	})
	return losses, err
}

// RecreateLosses lists what Up with Options.Recreate removes for good.
func RecreateLosses(ctx context.Context, options Options) (losses []string, err error) {
	err = withFleet(ctx, options, func(f *fleet) error {
		losses, err = f.losses(ctx, func(snapshot string) bool { return snapshot == FirstSnapshot })
		return err
	})
	return losses, err
}

// losses lists all hosts, and the snapshots that go with them.
func (f *fleet) losses(ctx context.Context, goes func(snapshot string) bool) ([]string, error) {
	found, err := f.found(ctx)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	var all []string
	for _, name := range slices.Sorted(slices.Values(names(found))) {
		all = append(all, "host "+name+" with its volumes")
	}
	kept, err := f.snapshots(ctx)
	for name, c := range kept {
		if goes(name) {
			all = append(all, c.Snapshot.loss())
		}
	}
	slices.Sort(all[len(found):])
	return all, err
}

func (s Snapshot) loss() string { return "snapshot " + s.Name + " of " + s.Made.Format(time.DateTime) }

// NodeLosses lists what RemoveNode removes for good. It returns the problems
// that RemoveNode returns before it changes anything.
func NodeLosses(ctx context.Context, options Options, name string, force bool, moves Moves) (losses []string, err error) {
	err = onNodes(ctx, options, nil, func(f *fleet, found []docker.FoundMachine) error {
		m, err := f.pick(name)
		if err != nil {
			return err
		}
		losses = []string{"host " + m.name + " with its volumes"}
		if force {
			return nil
		}
		return f.removable(ctx, m, found, moves)
	})
	return losses, err
}

// removable returns the problems of a removal of m that moves its pods away
// first.
func (f *fleet) removable(ctx context.Context, m member, found []docker.FoundMachine, moves Moves) error {
	if err := errors.Join(f.canRemove(m, found), f.lostQuorum(ctx, found)); err != nil {
		return err
	}
	_, err := moves.Drain(f.api(ctx, m), m.name).Check(ctx) // before a stopped node is started
	return err
}

// SnapshotLosses lists what RemoveSnapshot removes for good.
func SnapshotLosses(ctx context.Context, options Options, name string) (losses []string, err error) {
	err = withSnapshot(ctx, options, name, func(_ *fleet, s Snapshot) error {
		losses = []string{s.loss()}
		return nil
	})
	return losses, err
}

// RestoreLosses lists what RestoreSnapshot removes for good: the present state
// of all hosts.
func RestoreLosses(ctx context.Context, options Options, name string) (losses []string, err error) {
	err = withSnapshot(ctx, options, name, func(f *fleet, s Snapshot) error {
		found, err := f.found(ctx)
		for _, host := range slices.Sorted(slices.Values(names(found))) {
			losses = append(losses, "what changed on host "+host+" since "+s.Made.Format(time.DateTime))
		}
		return err
	})
	return losses, err
}

func withSnapshot(ctx context.Context, options Options, name string, do func(*fleet, Snapshot) error) error {
	return withCluster(ctx, options, func(f *fleet) error {
		all, err := f.snapshots(ctx)
		if err != nil {
			return err
		}
		c, ok := all[name]
		if !ok {
			return f.noSnapshot(name, all)
		}
		return do(f, c.Snapshot)
	})
}
