package cluster

import (
	"context"
	"errors"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
)

// replaceHosts removes all hosts, and records that the cluster next is created
// after them.
func replaceHosts(ctx context.Context, s *session.Session, next session.Record) error {
	next.Phase = session.Removing
	if err := s.WriteRecord(ctx, &next); err != nil {
		return err
	}
	for _, key := range []string{session.RestoringNote, session.ComponentsNote} {
		if err := s.Cluster().Forget(ctx, key); err != nil {
			return err
		}
	}
	if err := snapshot.RemoveHosts(ctx, s); err != nil {
		return err
	}
	next.Phase = session.Creating
	return s.WriteRecord(ctx, &next)
}

// remove removes the cluster with its snapshots. If it is killed, the record
// tells the next `cluster up` to remove the rest first.
func remove(ctx context.Context, s *session.Session) error {
	if err := s.WriteRecord(ctx, &session.Record{Phase: session.Removing}); err != nil {
		return err
	}
	return errors.Join(snapshot.ForgetAll(ctx, s), s.Cluster().Remove(ctx, session.RecordNote),
		os.RemoveAll(s.SharedDir()), os.RemoveAll(s.ComponentsPath()))
}

// removeBegun removes what a failed run of Up has created. The record of a
// cluster that was to be created again stays, and so do snapshots of an earlier
// cluster of this name.
func removeBegun(ctx context.Context, s *session.Session) error {
	r, err := s.Record(ctx)
	if err != nil {
		return err
	}
	if r != nil {
		return replaceHosts(ctx, s, *r)
	}
	kept, err := snapshot.Names(ctx, s)
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		return remove(ctx, s)
	}
	if err := replaceHosts(ctx, s, session.Record{}); err != nil {
		return err
	}
	return s.WriteRecord(ctx, nil)
}
