package cluster

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FirstSnapshot is what Up calls the snapshot that it takes by itself.
const FirstSnapshot = "first"

// comeBack brings a cluster back that is off and was made with the same
// settings, or goes on with a restore that was cut short. It reports whether
// the cluster is whole then. A cluster that is off and was made with other
// settings it removes, and says so.
func (f *fleet) comeBack(ctx context.Context, now settings) (whole bool, err error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil {
		return false, f.noAnswer(err)
	}
	if name := notes[restoringKey]; name != "" {
		rows, err := f.restoreRows(ctx, name)
		if err != nil {
			return false, err
		}
		return true, f.run(ctx, rows)
	}
	then, err := f.noted(ctx)
	if err != nil || then == nil {
		return false, err // it was never up
	}
	found, err := f.found(ctx)
	if err != nil || len(found) > 0 && !allOff(found) {
		return false, err
	}
	differs := then.differ(now)
	if len(found) == 0 {
		differs = cmp.Or(differs, "its hosts are gone")
	}
	if differs != "" {
		return false, f.run(ctx, f.startOver(differs))
	}
	// Another program brings its own host verbs: they shall have their say.
	same := string(then[program]) == string(now[program]) && f.Programs.areThose(notes[programsKey])
	return same, f.run(ctx, f.backRows(names(found)))
}

func allOff(found []docker.FoundMachine) bool {
	for _, m := range found {
		if m.State == "running" || m.State == "paused" {
			return false
		}
	}
	return len(found) > 0
}

// startOver removes what was made with other settings. Its snapshots stay, but
// for the first, which is of a cluster that is to be made anew.
func (f *fleet) startOver(differs string) step.Plan {
	remove := func(ctx context.Context) error {
		if err := f.removeHosts(ctx); err != nil {
			return err
		}
		if err := f.docker.Forget(ctx, f.Name, programsKey); err != nil {
			return err
		}
		return f.docker.Forget(ctx, f.Name, settingsKey) // last: who is killed before begins here again
	}
	return step.Plan{{
		todo(fmt.Sprintf("remove cluster %s, which was made with other settings: %s", f.Name, differs), remove),
		todo("remove snapshot "+FirstSnapshot, func(ctx context.Context) error { return f.dropSnapshot(ctx, FirstSnapshot) }),
	}}
}

// finish notes that the cluster is up and, the first time, takes a snapshot.
func (f *fleet) finish(ctx context.Context, now settings) error {
	then, err := f.noted(ctx)
	if err != nil {
		return err
	}
	if then.differ(now) != "" || string(then[program]) != string(now[program]) {
		if err := f.noteSettings(ctx, now); err != nil {
			return err
		}
	}
	if then != nil || !f.FirstSnapshot {
		return nil
	}
	return f.run(ctx, step.Plan{{todo("take snapshot "+FirstSnapshot, f.takeFirst)}})
}

// takeFirst goes without where there is no room: the cluster is up all the same.
func (f *fleet) takeFirst(ctx context.Context) error {
	release, err := f.lockCache(ctx, "snapshot-"+f.Name)
	if err != nil {
		return err
	}
	defer release()
	if err := f.dropSnapshot(ctx, FirstSnapshot); err != nil {
		return err
	}
	s := &saving{fleet: f, name: FirstSnapshot, spare: spareFirst}
	err = s.look(ctx)
	if problems := step.Problems(err); len(problems) > 0 && problems[0].Name == "snapshot-space" {
		step.Report(ctx, "left out: "+problems[0].Text, 0, 0)
		return nil
	}
	if err != nil {
		return err
	}
	for _, one := range s.rows().Steps() {
		if err := one.Apply(ctx); err != nil {
			return err
		}
	}
	return nil
}
