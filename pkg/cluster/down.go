package cluster

import (
	"context"
	"errors"
	"os"
)

// Down removes the hosts of a fleet with their volumes and network. Host
// images and their cache stay. It is harmless when nothing is left.
func Down(ctx context.Context, options Options) error {
	f, err := open(options, nil)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	if err := f.docker.Answers(ctx); err != nil {
		return f.noAnswer(err)
	}
	return f.remove(ctx)
}

func (f *fleet) remove(ctx context.Context) error {
	return errors.Join(f.docker.RemoveFleet(ctx, f.Name), os.RemoveAll(f.sharedDir()))
}
