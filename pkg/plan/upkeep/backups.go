package upkeep

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup/schedule"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
)

const (
	// idlePause is the time between two looks at the state of the backups. It matters only after a change that the
	// agent has not noticed, such as that of a clock.
	idlePause = time.Hour
	// busyPause is the time until the next attempt while another run changes this host, or etcd does not answer.
	busyPause = time.Minute
	// joinedPause is how much longer a control plane waits that did not create the cluster: only the settings of the
	// first one contain the addons.
	joinedPause = 30 * time.Second
)

// backUp makes the backups of the schedule. All control planes wait for the due time. The first to acquire the lock
// makes the backup. If its host dies, another control plane acquires the lock and makes the backup.
func (r Agent) backUp(ctx context.Context) error {
	changed, known := agent.NewSignal(), (*schedule.Schedule)(nil)
	go kube.Follow(ctx, recovery.Schedules.Watch, func(watch.Event) { changed.Give() })
	for ctx.Err() == nil {
		// Without an API server the last schedule holds.
		if now, err := recovery.Schedules.Read(ctx); err == nil {
			known = now
		}
		pause, err := r.untilBackup(ctx, known)
		if err != nil && ctx.Err() == nil {
			r.failed("back up")(err)
		}
		if agent.Awaits(ctx, changed, pause) || pause == idlePause || err != nil {
			continue
		}
		if err := r.backUpNow(ctx, *known); err != nil && ctx.Err() == nil {
			r.failed("back up")(err)
			agent.Awaits(ctx, changed, busyPause)
		}
	}
	return nil
}

// untilBackup returns how long this control plane waits for the next backup of a schedule.
func (r Agent) untilBackup(ctx context.Context, s *schedule.Schedule) (time.Duration, error) {
	if s == nil {
		return idlePause, nil
	}
	made, err := r.scheduled(*s)
	if err != nil {
		return busyPause, err
	}
	due, wanted, err := made.Due(ctx)
	switch {
	case err != nil:
		return busyPause, err
	case !wanted:
		return idlePause, nil
	}
	pause := max(0, time.Until(due)) + s.Jitter()
	if made.Host.Config.Join {
		pause += joinedPause
	}
	return min(pause, idlePause), nil
}

func (r Agent) scheduled(s schedule.Schedule) (recovery.Scheduled, error) {
	h, err := r.settings.Host()
	return recovery.Scheduled{Host: h, Program: r.Version, Schedule: s, Alone: r.alone}, err
}

// alone calls do while this process has the lock of this host.
func (r Agent) alone(ctx context.Context, do func(context.Context) error) error {
	_, release, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	return do(ctx)
}

// backUpNow returns the memory that a backup needs for compression to the system.
func (r Agent) backUpNow(ctx context.Context, s schedule.Schedule) error {
	defer debug.FreeOSMemory()
	made, err := r.scheduled(s)
	if err != nil {
		return err
	}
	err = made.Make(ctx)
	if errors.Is(err, host.ErrLocked) {
		return errors.Join(errors.New("another run changes this host now"), err)
	}
	return err
}
