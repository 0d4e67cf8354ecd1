package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// lockEvery is the interval of attempts to take the lock of a run that restarts Docker.
const lockEvery = time.Second

// finishRestarts completes each restart of Docker whose run was killed, so that the user's
// containers do not wait for the next run. The lock shows that no run is in progress. It
// leaves a Docker that the administrator has stopped, of which there is no record.
func (r Agent) finishRestarts(ctx context.Context, h *local.Host) error {
	interrupted := func() (bool, error) { return maindocker.Interrupted(h.Files), nil }
	for {
		if err := filesystem.Await(ctx, host.StateDir, interrupted); err != nil {
			return err
		}
		if err := r.finishRestart(ctx, h); err != nil && !errors.Is(err, host.ErrLocked) {
			return err
		}
		if err := step.Pause(ctx, lockEvery); err != nil {
			return err
		}
	}
}

func (r Agent) finishRestart(ctx context.Context, h *local.Host) error {
	held, release, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if !maindocker.Interrupted(h.Files) {
		return nil
	}
	r.Log("a run was killed while it restarted Docker: starting Docker and the containers that ran")
	return parts.InForce(h).Docker.Finish(step.WithLeft(h.Limited(held), r.Log))
}
