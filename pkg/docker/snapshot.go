package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/client"
)

// machineLabel holds what a machine was made from, so that it can be made again
// by one who knows the engine alone.
const machineLabel = "kube-bootstrap.dev/machine"

// KeptMachine is a machine of the engine: its definition and its present state.
type KeptMachine struct {
	Machine
	ImageID string    // of the image that it was made from
	Running bool      // also when it is paused
	Started time.Time // by the engine's clock, which is the machine's
	Bytes   int64     // what it changed of its root file system; only if asked for
}

// Kept looks at a machine.
func (c Machines) Kept(ctx context.Context, name string, size bool) (KeptMachine, error) {
	now, err := c.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{Size: size})
	if err != nil {
		return KeptMachine{}, err
	}
	found := now.Container
	kept := KeptMachine{ImageID: found.Image, Running: found.State.Running}
	if found.SizeRw != nil {
		kept.Bytes = *found.SizeRw
	}
	if kept.Started, err = time.Parse(time.RFC3339Nano, found.State.StartedAt); err != nil {
		return kept, fmt.Errorf("when %s was started: %w", name, err)
	}
	if err := json.Unmarshal([]byte(found.Config.Labels[machineLabel]), &kept.Machine); err != nil {
		return kept, fmt.Errorf("what %s was made from is not known: %w", name, err)
	}
	return kept, nil
}

// Commit makes an image of what a machine has on its root file system. Its
// volumes are no part of that.
func (c Machines) Commit(ctx context.Context, name, ref string) error {
	_, err := c.api.ContainerCommit(ctx, name, client.ContainerCommitOptions{Reference: ref, NoPause: true})
	return doing("keep the root file system of", name, err)
}

// Remove removes a machine, which may run, and the volumes that no other machine
// uses. A missing machine or volume is not an error.
func (c Machines) Remove(ctx context.Context, name string, volumes []string) error {
	if err := removeContainer(ctx, c.api, name); err != nil {
		return doing("remove", name, err)
	}
	var errs []error
	for _, volume := range volumes {
		errs = append(errs, Cluster(c).RemoveVolume(ctx, volume))
	}
	return errors.Join(errs...)
}
