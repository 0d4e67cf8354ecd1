package cluster

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FirstSnapshot is what Up calls the snapshot that it takes by itself.
const FirstSnapshot = "first"

// comeBack starts a cluster that is off, or continues an interrupted restore.
// It reports whether the cluster is complete afterwards. It removes nothing
// unless the options say so.
func (f *fleet) comeBack(ctx context.Context, now Record) (whole bool, err error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil {
		return false, f.noAnswer(err)
	}
	if f.Recreate {
		if err := f.look(ctx); err != nil {
			return false, err
		}
		return false, f.startOver(ctx, now)
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
	if err != nil || !allOff(found) {
		return false, err
	}
	// Another version of kube-bootstrap has other host verbs, which must run.
	same := then.Program == now.Program && f.Programs.areThose(notes[programsKey]) && !then.asks(now) && len(f.missing(found)) == 0
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

// startOver removes the cluster before it is created again. Its snapshots stay,
// except the first, which Up takes again.
func (f *fleet) startOver(ctx context.Context, next Record) error {
	what, err := f.whatRecreateRemoves(ctx)
	if err != nil {
		return err
	}
	return f.run(ctx, step.Plan{
		{todo(what, func(ctx context.Context) error { return f.replaceHosts(ctx, next) })},
		{todo("remove snapshot "+FirstSnapshot, func(ctx context.Context) error { return f.dropSnapshot(ctx, FirstSnapshot) })},
	})
}

// whatRecreateRemoves returns a step name that states what is removed and what
// stays.
func (f *fleet) whatRecreateRemoves(ctx context.Context) (string, error) {
	kept, err := f.snapshots(ctx)
	if err != nil {
		return "", err
	}
	delete(kept, FirstSnapshot)
	what := "remove the hosts of cluster " + f.Name + " and everything on them"
	if len(kept) > 0 {
		what += ", keep snapshots " + strings.Join(slices.Sorted(maps.Keys(kept)), ", ")
	}
	return what, nil
}

// finish notes that the cluster is up and, the first time, takes a snapshot.
func (f *fleet) finish(ctx context.Context, now Record) error {
	then, err := f.noted(ctx)
	if err != nil {
		return err
	}
	if then == nil || !reflect.DeepEqual(*then, now) {
		if err := f.note(ctx, &now); err != nil {
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
