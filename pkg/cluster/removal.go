package cluster

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// resume makes Up finish a removal that was interrupted. Hosts of the former
// cluster would otherwise become part of the new one.
func (f *fleet) resume(ctx context.Context) error {
	r, err := f.written(ctx)
	f.Recreate = f.Recreate || r.removing()
	return err
}

// replaceHosts removes all hosts, and records that the cluster next is created
// after them.
func (f *fleet) replaceHosts(ctx context.Context, next Record) error {
	next.Phase = Removing
	if err := f.note(ctx, &next); err != nil {
		return err
	}
	for _, key := range []string{restoringKey, programsKey} {
		if err := f.docker.Forget(ctx, f.Name, key); err != nil {
			return err
		}
	}
	if err := f.removeHosts(ctx); err != nil {
		return err
	}
	next.Phase = Creating
	return f.note(ctx, &next)
}

// remove removes the cluster with its snapshots. If it is killed, the record
// tells the next `cluster up` to remove the rest first.
func (f *fleet) remove(ctx context.Context) error {
	if err := f.note(ctx, &Record{Phase: Removing}); err != nil {
		return err
	}
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil {
		return err
	}
	for key := range notes {
		if strings.HasPrefix(key, snapshotKey) { // before its parts: an incomplete snapshot is none
			err = errors.Join(err, f.docker.Forget(ctx, f.Name, key))
		}
	}
	return errors.Join(err, f.docker.RemoveFleet(ctx, f.Name, recordKey), os.RemoveAll(f.sharedDir()), os.RemoveAll(f.programsPath()))
}

// removeBegun removes what a failed run of Up has created. The record of a
// cluster that was to be created again stays, and so do snapshots of an earlier
// cluster of this name.
func (f *fleet) removeBegun(ctx context.Context) error {
	r, err := f.written(ctx)
	if err != nil {
		return err
	}
	if r != nil {
		return f.replaceHosts(ctx, *r)
	}
	kept, err := f.snapshots(ctx)
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		return f.remove(ctx)
	}
	if err := f.replaceHosts(ctx, Record{}); err != nil {
		return err
	}
	return f.docker.Forget(ctx, f.Name, recordKey)
}

// interrupted returns the problem that a run was interrupted while it created or
// removed the cluster; nil if none was.
func (f *fleet) interrupted(ctx context.Context) error {
	r, err := f.written(ctx)
	if err != nil || r == nil || r.Phase == "" {
		return err
	}
	return &step.Problem{Name: "cluster-unfinished", Text: "a run that removed the hosts of cluster " + f.Name + " to create it again was interrupted",
		Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "` to finish, or `kube-bootstrap cluster clean --name " + f.Name + "`"}
}
