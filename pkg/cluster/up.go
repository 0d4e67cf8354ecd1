package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/requirements"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

type up struct {
	cluster containers.Cluster
	options Options
	record  session.Record // of the cluster once it is up
}

// Up creates the hosts and runs kube-bootstrap on each: master on the first
// one, then master --join or worker on all others at once. If everything is up
// to date, Up changes nothing. A cluster that was stopped by Down is only started
// again. An existing cluster with other settings is not changed unless
// Options.Recreate is set. Events of a host carry its name.
func Up(ctx context.Context, options Options, emit func(session.HostEvent)) error {
	o, err := open(ctx, options, session.Requirements{Lock: session.ClusterLock, Emit: emit})
	if err != nil {
		return err
	}
	defer o.close()
	record, err := o.options.record()
	if err != nil {
		return err
	}
	if o.options.Recreate, err = recreates(ctx, o.cluster.Session, o.options); err != nil {
		return err
	}
	if err := (up{o.cluster, o.options, record}).run(ctx, o.state); err != nil {
		return err
	}
	return kubeconfig.Update(ctx, o.cluster.Session)
}

// run creates or starts the cluster, and saves its first snapshot.
func (u up) run(ctx context.Context, state topology.State) error {
	complete, err := u.resume(ctx, state)
	if err == nil && !complete {
		err = u.create(ctx)
	}
	if err != nil || u.options.Incomplete {
		return err
	}
	return u.saveFirst(ctx)
}

// create creates the missing hosts and runs kube-bootstrap on all hosts.
func (u up) create(ctx context.Context) error {
	state, err := u.cluster.Session.Observe(ctx)
	if err != nil {
		return err
	}
	options, source, err := u.options.source(ctx, u.cluster.Session)
	if err != nil {
		return err
	}
	record, err := u.cluster.Session.UpRecord(ctx)
	if err != nil {
		return err
	}
	nodes := options.Topology(u.cluster.Name, state)
	setup := options.setup(u.cluster, nodes)
	ch := change{u.cluster, options, nodes, state, source}
	join := ch.join(nodes.FirstControlPlane(state))
	c, err := newCreation(ctx, ch, join, setup, record == nil)
	if err != nil {
		return err
	}
	remains := setup.RemoveRemains(nodes.Missing(state)).If(c.isNew)
	if err := begin(ctx, c.setup, options, remains, c.others(), c.plan()); err != nil {
		join.Revoke()
		return err
	}
	if u.options.Incomplete {
		return nil
	}
	return u.finish(ctx)
}

// begin runs a first step, creates and starts hosts of a topology, and applies a
// plan to them. If that fails, begin removes everything that it created, unless
// there were hosts before or Options.Retain is set.
func begin(
	ctx context.Context, setup testhost.Setup, o Options, first step.Step, hosts []topology.ClusterNode, plan step.Plan,
) error {
	c := setup.Cluster
	if err := requirements.Check(ctx, setup, o.Recreate); err != nil {
		return err
	}
	before, err := c.Session.Observe(ctx)
	if err != nil {
		return err
	}
	if err := c.NoteEngine(ctx); err != nil {
		return err
	}
	boot := setup.BootPlan(hosts, requirements.DiskSpace, o.noteComponents(c.Session))
	err = c.Session.Run(ctx, slices.Concat(step.Plan{{first}}, boot, plan))
	if err == nil || o.Retain || !before.Empty() {
		return err
	}
	cleanup, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	return errors.Join(err, removeBegun(cleanup, c), setup.Disk.TakeBack(cleanup, c))
}

// finish records that the cluster is up and, the first time, that its first snapshot follows.
func (u up) finish(ctx context.Context) error {
	then, err := u.cluster.Session.UpRecord(ctx)
	if err != nil {
		return err
	}
	if then != nil && reflect.DeepEqual(*then, u.record) {
		return nil
	}
	if then == nil && u.options.FirstSnapshot { // before the record, which ends the first time
		if err := u.cluster.Session.Notes().Set(ctx, session.FirstNote, snapshot.First); err != nil {
			return err
		}
	}
	return u.cluster.Session.WriteRecord(ctx, &u.record)
}

// saveFirst saves the first snapshot if it is due, also after a run that failed to save it.
func (u up) saveFirst(ctx context.Context) error {
	notes, err := u.cluster.Session.Notes().All(ctx)
	if err != nil || notes[session.FirstNote] == "" {
		return err
	}
	if !u.options.FirstSnapshot {
		return u.cluster.Session.Notes().Forget(ctx, session.FirstNote)
	}
	first := step.Always("first-snapshot", "take snapshot "+snapshot.First,
		func(ctx context.Context) error { return snapshot.SaveFirst(ctx, u.cluster) })
	return u.cluster.Session.Run(ctx, step.Plan{{first}})
}

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
	notes, err := u.cluster.Session.Notes().All(ctx)
	if err != nil {
		return false, u.cluster.Session.Provider.NoAnswer(err)
	}
	requested := u.options.Topology(u.cluster.Name, topology.State{})
	setup := u.options.setup(u.cluster, requested)
	if u.options.Recreate {
		if err := requirements.Check(ctx, setup, true); err != nil {
			return false, err
		}
		return false, u.removeFormer(ctx)
	}
	if name := notes[session.RestoringNote]; name != "" {
		return true, snapshot.Restore(ctx, setup, name)
	}
	then, err := u.cluster.Session.UpRecord(ctx)
	if err != nil || then == nil || !state.AllOff() {
		return false, err
	}
	// Another version of kube-bootstrap has other host commands, which must run.
	same := then.Program == u.record.Program && u.options.Components.equal(notes[session.ComponentsNote]) &&
		!then.Asks(u.record) && len(requested.Missing(state)) == 0
	return same, u.cluster.Session.Run(ctx, setup.StartPlan(state.Names()))
}

// removeFormer removes the cluster before it is created again. Its snapshots
// stay, except the first, which Up saves again.
func (u up) removeFormer(ctx context.Context) error {
	kept, err := snapshot.Names(ctx, u.cluster.Session)
	if err != nil {
		return err
	}
	return u.cluster.Session.Run(ctx, step.Plan{
		{step.Always("remove-hosts", removalTitle(u.cluster.Name, kept), func(ctx context.Context) error {
			return replaceHosts(ctx, u.cluster, u.record)
		})},
		{step.Always("remove-first-snapshot", "remove snapshot "+snapshot.First, func(ctx context.Context) error {
			return snapshot.Drop(ctx, u.cluster, snapshot.First)
		})},
	})
}

func removalTitle(cluster string, snapshots []string) string {
	kept := slices.DeleteFunc(snapshots, func(name string) bool { return name == snapshot.First })
	title := "remove the hosts of cluster " + cluster + " and everything on them"
	if len(kept) > 0 {
		title += ", keep snapshots " + strings.Join(kept, ", ")
	}
	return title
}

// RestoreSnapshot replaces all hosts by the hosts of a snapshot.
func RestoreSnapshot(ctx context.Context, options Options, name string, emit func(session.HostEvent)) error {
	o, err := open(ctx, options, session.Requirements{Needs: session.ACluster, Lock: session.ClusterLock, Emit: emit})
	if err != nil {
		return err
	}
	defer o.close()
	nodes := o.options.Topology(o.cluster.Name, topology.State{})
	if err := snapshot.Restore(ctx, o.options.setup(o.cluster, nodes), name); err != nil {
		return err
	}
	return kubeconfig.Update(ctx, o.cluster.Session)
}
