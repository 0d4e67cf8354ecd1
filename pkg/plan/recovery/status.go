package recovery

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup/schedule"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// BackupStatus is the schedule of a cluster, its last good backup, and what is wrong. It contains no secret.
type BackupStatus struct {
	Schedule schedule.Schedule `json:"schedule"`
	Last     *schedule.Backup  `json:"last,omitempty"`
	LastPath string            `json:"lastPath,omitempty"`
	Next     time.Time         `json:"next"` // without the jitter
	Problems []*step.Problem   `json:"problems,omitempty"`
}

// StatusOf returns the state of the backups of a cluster, nil if they have no schedule.
func StatusOf(ctx context.Context, h *local.Host, store schedule.Store) (*BackupStatus, error) {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	found, err := store.Read(ctx)
	if err != nil || found == nil {
		return nil, err
	}
	status := &BackupStatus{Schedule: *found}
	status.Schedule.S3 = found.S3.WithoutSecrets()
	err = parts.InForce(h).Etcd.Client.Do(ctx, func(client *clientv3.Client) error {
		state, _, err := schedule.Read(ctx, client)
		if err != nil {
			return err
		}
		cluster, err := clusterOf(ctx, client)
		if err == nil {
			status.inspect(state, cluster, time.Now())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return status, nil
}

func (s *BackupStatus) inspect(state schedule.State, cluster string, now time.Time) {
	s.Problems, s.Next = s.Schedule.Problems(state, cluster, now), s.Schedule.Due(state)
	if last, found := state.Last(""); found {
		s.Last, s.LastPath = &last, last.Path()
	}
}

// String returns the line of the last backup.
func (s BackupStatus) String() string {
	if s.Last == nil {
		return "no good backup yet, one is due every " + s.Schedule.Every.Duration.String()
	}
	place := s.LastPath
	if !s.Last.InBucket() {
		place += " on " + s.Last.Host
	}
	age := time.Since(s.Last.Created).Round(time.Minute)
	return fmt.Sprintf("%s UTC (%s ago), %s", s.Last.Created.UTC().Format(time.DateTime), age, place)
}

// ClusterID returns the ID of the cluster of etcd, for a new schedule.
func ClusterID(ctx context.Context, h *local.Host) (id string, err error) {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	err = parts.InForce(h).Etcd.Client.Do(ctx, func(client *clientv3.Client) error {
		id, err = clusterOf(ctx, client)
		return err
	})
	return id, err
}
