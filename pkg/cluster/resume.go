package cluster

import (
	"context"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// recreates reports whether Up removes all hosts first: by option, or because a
// run that did so was interrupted. Hosts of the former cluster would otherwise
// become part of the new one.
func recreates(ctx context.Context, s *session.Session, o Options) (bool, error) {
	r, err := s.Record(ctx)
	return o.Recreate || r.Removing(), err
}

// resume starts a cluster that is off, or continues an interrupted restore or
// removal. It reports whether the cluster is complete afterwards. It removes
// nothing unless the options say so.
func (u up) resume(ctx context.Context, state topology.State) (complete bool, err error) {
	notes, err := u.session.Cluster().Notes(ctx)
	if err != nil {
		return false, u.session.NoAnswer(err)
	}
	requested := u.options.Topology(u.session.Name, topology.State{})
	if u.options.Recreate {
		if err := u.options.preflight(requested).Check(ctx, u.session); err != nil {
			return false, err
		}
		return false, u.removeFormer(ctx)
	}
	if name := notes[session.RestoringNote]; name != "" {
		plan, err := snapshot.RestorePlan(ctx, u.session, u.options.setup(requested), name)
		if err != nil {
			return false, err
		}
		return true, u.session.Run(ctx, plan)
	}
	then, err := u.session.UpRecord(ctx)
	if err != nil || then == nil || !state.AllOff() {
		return false, err
	}
	// Another version of kube-bootstrap has other host commands, which must run.
	same := then.Program == u.record.Program && u.options.Components.equal(notes[session.ComponentsNote]) &&
		!then.Asks(u.record) && len(requested.Missing(state)) == 0
	setup, subnet := u.options.setup(requested), requested.Subnet()
	plan := testhost.StartPlan(u.session, state.Names(), setup.Front(u.session, subnet), setup.LocalRegistry(u.session, subnet))
	return same, u.session.Run(ctx, plan)
}

// removeFormer removes the cluster before it is created again. Its snapshots
// stay, except the first, which Up saves again.
func (u up) removeFormer(ctx context.Context) error {
	kept, err := snapshot.Names(ctx, u.session)
	if err != nil {
		return err
	}
	return u.session.Run(ctx, step.Plan{
		{step.Always(removalTitle(u.session.Name, kept), func(ctx context.Context) error { return replaceHosts(ctx, u.session, u.record) })},
		{step.Always("remove snapshot "+snapshot.First, func(ctx context.Context) error { return snapshot.Drop(ctx, u.session, snapshot.First) })},
	})
}

// removalTitle states what is removed and which snapshots stay.
func removalTitle(cluster string, snapshots []string) string {
	var kept []string
	for _, name := range snapshots {
		if name != snapshot.First {
			kept = append(kept, name)
		}
	}
	title := "remove the hosts of cluster " + cluster + " and everything on them"
	if len(kept) > 0 {
		title += ", keep snapshots " + strings.Join(kept, ", ")
	}
	return title
}
