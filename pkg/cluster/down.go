package cluster

import (
	"context"
	"errors"
	"os"
)

// Down switches all hosts of a fleet off at the same time. What is on them
// stays, so that Up brings it back. It is harmless when nothing runs.
func Down(ctx context.Context, options Options) error {
	return withFleet(ctx, options, func(f *fleet) error {
		found, err := f.found(ctx)
		if err != nil {
			return err
		}
		return f.docker.SwitchOff(ctx, names(found)...)
	})
}

// Clean removes the hosts of a fleet with their volumes and network. Host
// images and their cache stay. It is harmless when nothing is left.
func Clean(ctx context.Context, options Options) error {
	return withFleet(ctx, options, func(f *fleet) error { return f.remove(ctx) })
}

// withFleet does something to a fleet whose engine answers.
func withFleet(ctx context.Context, options Options, do func(*fleet) error) error {
	f, err := open(options, nil)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	if err := f.docker.Answers(ctx); err != nil {
		return f.noAnswer(err)
	}
	return do(f)
}

func (f *fleet) remove(ctx context.Context) error {
	return errors.Join(f.docker.RemoveFleet(ctx, f.Name), os.RemoveAll(f.sharedDir()))
}
