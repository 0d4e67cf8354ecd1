package snapshot

import (
	"context"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
)

// Losses returns what a removal of all snapshots removes for good. It skips
// snapshots for which goes returns false.
func Losses(ctx context.Context, s *session.Session, goes func(snapshot string) bool) ([]string, error) {
	all, err := contentsOf(ctx, s)
	var losses []string
	for name, c := range all {
		if goes(name) {
			losses = append(losses, c.Snapshot.loss())
		}
	}
	slices.Sort(losses)
	return losses, err
}

func (s Snapshot) loss() string { return "snapshot " + s.Name + " of " + s.Made.Format(time.DateTime) }

// RemoveLosses lists what Remove removes for good.
func RemoveLosses(ctx context.Context, options session.Options, name string) (losses []string, err error) {
	err = withSnapshot(ctx, options, name, func(s Snapshot, _ topology.State) { losses = []string{s.loss()} })
	return losses, err
}

// RestoreLosses lists what Restore removes for good: the present state of all
// hosts.
func RestoreLosses(ctx context.Context, options session.Options, name string) (losses []string, err error) {
	err = withSnapshot(ctx, options, name, func(s Snapshot, state topology.State) {
		for _, host := range state.Names() {
			losses = append(losses, "what changed on host "+host+" since "+s.Made.Format(time.DateTime))
		}
	})
	return losses, err
}

func withSnapshot(ctx context.Context, options session.Options, name string, do func(Snapshot, topology.State)) error {
	return session.Do(ctx, options, session.Scope{Needs: session.ACluster}, func(s *session.Session, state topology.State) error {
		all, err := contentsOf(ctx, s)
		if err != nil {
			return err
		}
		c, ok := all[name]
		if !ok {
			return missing(s.Name, name, all)
		}
		do(c.Snapshot, state)
		return nil
	})
}
