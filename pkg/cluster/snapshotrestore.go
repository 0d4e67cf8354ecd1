package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// restoringKey is that of the note that says which snapshot is being put back.
// While it is there, the hosts are no cluster; whoever comes next goes on.
const restoringKey = "restoring"

// RestoreSnapshot puts a cluster back to where a snapshot found it, and waits
// until it is Ready. What has become of the cluster since is gone; the snapshot
// stays as it is.
func RestoreSnapshot(ctx context.Context, options Options, name string, emit func(Event)) error {
	return withSnapshots(ctx, options, emit, func(f *fleet) error {
		rows, err := f.restoreRows(ctx, name)
		if err != nil {
			return err
		}
		if err := f.run(ctx, rows); err != nil {
			return err
		}
		return f.remerge(ctx)
	})
}

func (f *fleet) restoreRows(ctx context.Context, name string) (step.Plan, error) {
	all, err := f.snapshots(ctx)
	if err != nil {
		return nil, err
	}
	c, ok := all[name]
	if !ok {
		return nil, f.noSnapshot(name, all)
	}
	if c.Format > snapshotFormat {
		return nil, &step.Problem{Name: "snapshot-version", Text: fmt.Sprintf("snapshot %s is of form %d, this program knows %d", name, c.Format, snapshotFormat),
			Remedy: "use the kube-bootstrap that made it"}
	}
	then := *f
	then.Subnet = c.Subnet
	for inside, outside := range c.Ports {
		then.APIPort, then.Publish = int(inside), inside == outside
	}
	return f.restorePlan(c, then), nil
}

func (f *fleet) restorePlan(c contents, then fleet) step.Plan {
	name := c.Snapshot.Name
	var copies []step.Step
	for _, m := range c.Machines {
		copies = append(copies, f.putBack(m, name))
	}
	begin := func(ctx context.Context) error {
		if err := f.docker.Note(ctx, f.Name, restoringKey, name); err != nil {
			return err
		}
		return f.docker.Forget(ctx, f.Name, recordKey) // it may be the record of a removal, which would go on instead
	}
	ground := func(ctx context.Context) (err error) {
		f.ground, err = f.docker.Ground(ctx, rootOf(c.Machines[0].Name, name), f.Name)
		return err
	}
	remember := func(ctx context.Context) error { return f.rememberSettings(ctx, c.Settings) }
	end := func(ctx context.Context) error { return f.docker.Forget(ctx, f.Name, restoringKey) }
	return append(step.Plan{
		{todo("remove what a killed run left", f.sweep)},
		{todo("begin to restore snapshot "+name, begin)},
		{todo("remove the hosts as they are", f.removeHosts)},
		{then.network(), f.shared(), todo("remember the settings", remember), todo("look at the machine of the engine", ground)},
		copies,
		{todo("end to restore snapshot "+name, end)},
	}, then.backRows(machineNames(c.Machines))...)
}

// rememberSettings takes over those of a snapshot. One of a cluster that was
// not finished has none.
func (f *fleet) rememberSettings(ctx context.Context, r *Record) error {
	if r == nil {
		return f.docker.Forget(ctx, f.Name, recordKey)
	}
	return f.note(ctx, r)
}

// removeHosts removes the hosts with what is on them, and their network. The
// snapshots stay.
func (f *fleet) removeHosts(ctx context.Context) error {
	hosts, err := f.keptMachines(ctx)
	if err != nil {
		return err
	}
	err = each(len(hosts), func(i int) error { return f.docker.RemoveMachine(ctx, hosts[i].Name, f.ownVolumes(hosts[i].Machine)) })
	if err != nil {
		return err
	}
	if err := errors.Join(f.removeLostVolumes(ctx), f.docker.Remove(ctx, f.frontName())); err != nil {
		return err
	}
	return f.docker.RemoveNetwork(ctx, f.Name)
}

// removeLostVolumes removes those whose host a killed run has removed before
// them.
func (f *fleet) removeLostVolumes(ctx context.Context) error {
	volumes, err := f.docker.Volumes(ctx, f.Name)
	errs := []error{err}
	for _, v := range volumes {
		if !v.IsNote() && v.Labels[snapshotLabel] == "" && v.Name != f.sharedVolume() {
			errs = append(errs, f.docker.RemoveVolume(ctx, v.Name))
		}
	}
	return errors.Join(errs...)
}

// putBack is the step that makes a host out of its part of a snapshot.
func (f *fleet) putBack(m docker.MadeFrom, snapshot string) step.Step {
	again := m.Machine
	again.RootFS = rootOf(m.Name, snapshot)
	return todo("put back "+m.Name, func(ctx context.Context) error {
		again.Ground = f.ground
		for _, volume := range f.ownVolumes(again) {
			if err := f.docker.MakeVolume(ctx, f.Name, volume, nil); err != nil {
				return err
			}
			if err := f.docker.CopyVolume(ctx, f.Name, again.RootFS, copyOf(volume, snapshot), volume); err != nil {
				return err
			}
		}
		return f.docker.StartMachine(ctx, again)
	})
}

func machineNames(all []docker.MadeFrom) []string {
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}
