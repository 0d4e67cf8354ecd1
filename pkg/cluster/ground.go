package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// spacePerHost is what the images of a host and its state need.
const spacePerHost = 2 << 30 // bytes

// lookAtGround is the step that asks what the engine's machine can give, before
// the first host is made there. It leaves nothing behind.
func (f *fleet) lookAtGround() step.Step {
	return step.Step{
		Name:  "look at the machine of the engine",
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			missing, err := f.missing(ctx)
			if missing == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("look whether there is room for %d hosts", missing)}, err
		},
		Apply: func(ctx context.Context) error {
			var err error
			if f.ground, err = f.docker.Ground(ctx, f.image, f.Name); err != nil {
				return err
			}
			missing, err := f.missing(ctx)
			return errors.Join(err, spaceProblem(f.ground.FreeBytes, missing))
		},
	}
}

// missing counts the hosts that are to be made.
func (f *fleet) missing(ctx context.Context) (int, error) {
	found, err := f.found(ctx)
	there := map[string]bool{}
	for _, m := range found {
		there[m.Name] = true
	}
	missing := 0
	for _, m := range f.members() {
		if !there[m.name] {
			missing++
		}
	}
	return missing, err
}

func spaceProblem(free int64, hosts int) error {
	if need := int64(hosts) * spacePerHost; free < need {
		return &step.Problem{
			Name: "disk-space", Text: fmt.Sprintf("the machine of the engine has %d MiB free, %d hosts need %d MiB", free>>20, hosts, need>>20),
			Remedy: "free some space there (`docker system prune`), or make fewer hosts",
		}
	}
	return nil
}
