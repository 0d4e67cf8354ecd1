package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// lookAtGround is the step that asks what the engine's machine can give, before
// the first host is made there. It leaves nothing behind.
func (f *fleet) lookAtGround() step.Step {
	return step.Step{
		Name:  "look at the machine of the engine",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			found, err := f.found(ctx)
			missing := f.missing(found)
			if len(missing) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("look whether there is room for %d hosts", len(missing))}, err
		},
		Apply: func(ctx context.Context) error {
			var err error
			if f.ground, err = f.docker.Ground(ctx, f.image(), f.Name); err != nil {
				return err
			}
			found, err := f.found(ctx)
			return errors.Join(err, spaceProblem(f.ground.FreeBytes, f.missing(found)))
		},
	}
}
