package cluster

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Recorded returns the settings that a cluster was created with. For a cluster
// that is not finished it returns the known part, and nil if no cluster exists.
func Recorded(ctx context.Context, options session.Options) (r *session.Record, err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		r, err = recorded(ctx, s)
		return err
	})
	return r, err
}

func recorded(ctx context.Context, s *session.Session) (*session.Record, error) {
	r, err := s.Record(ctx)
	if err != nil || r.Removing() {
		return r, err
	}
	notes, err := s.Cluster().Notes(ctx)
	if err != nil {
		return nil, err
	}
	if name := notes[session.RestoringNote]; name != "" { // the next run continues the restore, so the snapshot's settings apply
		if r, err = snapshot.Settings(ctx, s, name); err != nil {
			return nil, err
		}
	}
	if r == nil {
		return unfinished(ctx, s)
	}
	r.Bundle = sharedBundle(s.Options)
	return r, nil
}

// unfinished returns the record of a cluster that has never been up: only the
// subnet of its network is known.
func unfinished(ctx context.Context, s *session.Session) (*session.Record, error) {
	subnet, err := s.Subnet(ctx)
	if !subnet.IsValid() {
		return nil, err
	}
	return &session.Record{Settings: config.Made{Given: map[string]string{"dindSubnet": subnet.String()}}}, err
}

// Exists reports whether any part of a cluster exists.
func Exists(ctx context.Context, options session.Options) (exists bool, err error) {
	err = session.Do(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) error {
		exists, err = s.Exists(ctx)
		return err
	})
	return exists, err
}
