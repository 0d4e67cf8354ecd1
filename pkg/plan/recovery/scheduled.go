package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup/schedule"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Schedules is the schedule as the agent of a control plane reads it.
var Schedules = schedule.Store{API: kube.Kubeconfig(controlplane.AgentConf)}

const (
	// scheduledLimit is the time that a backup may take, and the time that another control plane waits for it.
	scheduledLimit = 2 * time.Hour
	// lockName is the lock of the control plane that makes the backup.
	lockName = "backup"
)

// Scheduled makes the backups of a schedule on a control plane.
type Scheduled struct {
	Host     *local.Host
	Program  string // version of kube-bootstrap
	Schedule schedule.Schedule
	// Alone calls its argument while no run changes the files of this host.
	Alone func(context.Context, func(context.Context) error) error
}

// Due returns when the next backup is due. There is none for a cluster that was restored since the schedule was made.
func (s Scheduled) Due(ctx context.Context) (due time.Time, wanted bool, err error) {
	ctx, cancel := step.Checking(s.Host.Limited(ctx))
	defer cancel()
	err = s.etcd().Client.Do(ctx, func(client *clientv3.Client) error {
		state, _, err := schedule.Read(ctx, client)
		if err != nil {
			return err
		}
		id, err := clusterOf(ctx, client)
		due, wanted = s.Schedule.Due(state), id == s.Schedule.Cluster
		return err
	})
	return due, wanted, err
}

func (s Scheduled) etcd() parts.Etcd { return parts.InForce(s.Host).Etcd }

// clusterOf returns the ID of the cluster of etcd.
func clusterOf(ctx context.Context, client *clientv3.Client) (string, error) {
	found, err := client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list the members of etcd: %w", err)
	}
	return strconv.FormatUint(found.Header.ClusterId, 16), nil
}

// Make makes the backup, unless another control plane has made it meanwhile. Its failures are in the State, where
// every control plane finds them.
func (s Scheduled) Make(ctx context.Context) error {
	ctx = step.WithLimit(ctx, scheduledLimit)
	return s.etcd().Member.Alone(ctx, lockName, func(ctx context.Context) error {
		ctx, cancel := step.Limited(ctx)
		defer cancel()
		due, wanted, err := s.Due(ctx)
		if err != nil || !wanted || time.Now().Before(due) {
			return err
		}
		return s.etcd().Client.Do(ctx, func(client *clientv3.Client) error { return s.make(ctx, client) })
	})
}

// make makes a backup and then removes old ones.
func (s Scheduled) make(ctx context.Context, client *clientv3.Client) error {
	err := s.write(ctx, client)
	if err == nil {
		return s.removeOld(ctx, client)
	}
	if errors.Is(err, host.ErrLocked) || errors.Is(ctx.Err(), context.Canceled) {
		return err // the next attempt is soon
	}
	// The limit of the backup may be over.
	ctx, cancel := step.Checking(s.Host.Limited(context.WithoutCancel(ctx)))
	defer cancel()
	failure := schedule.FailureOf(err, s.Host.Config.HostName, s.Schedule.To, time.Now().UTC())
	return errors.Join(err, schedule.Change(ctx, client, func(state *schedule.State) { state.Failure = failure }))
}

func (s Scheduled) write(ctx context.Context, client *clientv3.Client) error {
	source, err := s.source(ctx, client)
	if err != nil {
		return err
	}
	recipients, err := backup.Recipients(s.Schedule.Recipients)
	if err != nil {
		return err
	}
	place, err := s.Schedule.Place()
	if err != nil {
		return err
	}
	name := s.Host.Config.HostName
	begun := schedule.Begun{To: s.Schedule.To, Host: name, Name: backup.Name(name, source.Origin.Created)}
	if err := schedule.Change(ctx, client, func(state *schedule.State) { state.Begin(begun) }); err != nil {
		return err
	}
	file, err := place.Write(ctx, begun.Name, source, recipients)
	if err != nil {
		return err
	}
	made := schedule.Backup{Begun: begun, Size: file.Size, Version: file.Version, Created: source.Origin.Created}
	return schedule.Change(ctx, client, func(state *schedule.State) { state.Complete(made) })
}

// source reads the files of this host while no run changes them. The snapshot of etcd needs no lock.
func (s Scheduled) source(ctx context.Context, client *clientv3.Client) (backup.Source, error) {
	var files []host.File
	err := s.Alone(ctx, func(ctx context.Context) (err error) {
		files, err = readFiles(ctx, s.Host)
		return err
	})
	if err != nil {
		return backup.Source{}, err
	}
	return sourceOf(ctx, s.Host, client, s.Program, files)
}

// removeOld removes the backups that the schedule does not keep, and what killed runs have left.
func (s Scheduled) removeOld(ctx context.Context, client *clientv3.Client) error {
	state, _, err := schedule.Read(ctx, client)
	if err != nil {
		return err
	}
	gone, err := s.retain(ctx, state)
	var kept *schedule.Failure
	if err != nil {
		kept = schedule.FailureOf(err, s.Host.Config.HostName, s.Schedule.To, time.Now().UTC())
	}
	return errors.Join(err, schedule.Change(ctx, client, func(state *schedule.State) {
		state.Forget(gone)
		state.Kept = kept
	}))
}

// retain returns the entries of the State that are gone now.
func (s Scheduled) retain(ctx context.Context, state schedule.State) (gone []schedule.Begun, err error) {
	place, err := s.Schedule.Place()
	if err != nil {
		return nil, err
	}
	files, err := place.List(ctx)
	if err != nil {
		return nil, err
	}
	r := state.Retain(files, s.Schedule.To, s.Host.Config.HostName, s.Schedule.Keep)
	gone = slices.Clone(r.Gone)
	for _, old := range r.Remove {
		if err := place.Remove(ctx, old.Name); err != nil {
			return gone, err
		}
		gone = append(gone, old)
	}
	return gone, nil
}
