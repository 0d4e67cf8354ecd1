package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// lockEvery is the interval of attempts to take the lock of a run that restarts Docker.
const lockEvery = time.Second

// finishRestarts completes each restart of Docker whose run was killed, so that the user's
// containers do not wait for the next run. The lock shows that no run is in progress. It
// leaves a Docker that the administrator has stopped, of which there is no record.
func (r Agent) finishRestarts(ctx context.Context, p parts.Parts) error {
	interrupted := func() (bool, error) { return maindocker.Interrupted(p.Docker.Files), nil }
	for {
		if err := filesystem.Await(ctx, host.StateDir, interrupted); err != nil {
			return err
		}
		if err := r.finishRestart(ctx, p.Docker); err != nil && !errors.Is(err, host.ErrLocked) {
			return err
		}
		if err := step.Pause(ctx, lockEvery); err != nil {
			return err
		}
	}
}

func (r Agent) finishRestart(ctx context.Context, docker maindocker.Daemon) error {
	held, release, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if !maindocker.Interrupted(docker.Files) {
		return nil
	}
	r.Log("a run was killed while it restarted Docker: starting Docker and the containers that ran")
	return docker.Finish(step.WithLeft(step.WithLimit(held, step.Limit(ctx)), r.Log))
}
