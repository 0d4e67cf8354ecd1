package cluster

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// Down switches all hosts of a fleet off at the same time. What is on them
// stays, so that Up brings it back. It is harmless when nothing runs. A cluster
// that does not exist is a problem, here and for every other verb.
func Down(ctx context.Context, options Options) error {
	return alone(ctx, options, func(f *fleet) error {
		found, err := f.found(ctx)
		if err != nil {
			return err
		}
		return f.docker.SwitchOff(ctx, append(names(found), f.frontName())...)
	})
}

// Clean removes a fleet and everything that was made for it: hosts, volumes,
// network, entries in the user's kubeconfig, certificates, and the host images
// once no fleet uses them, unless KeepImages is set. What was downloaded or
// built stays in the cache.
func Clean(ctx context.Context, options Options) error {
	return alone(ctx, options, func(f *fleet) error {
		release, err := f.lockCache(ctx, "snapshot-"+f.Name) // also one that a killed run left
		if err != nil {
			return err
		}
		defer release()
		return errors.Join(f.unmerge(ctx), f.remove(ctx), os.RemoveAll(f.privateDir()), f.removeImages(ctx))
	})
}

// removeImages does nothing while there is another fleet: it may be about to
// use them.
func (f *fleet) removeImages(ctx context.Context) error {
	if f.KeepImages {
		return nil
	}
	machines, err := f.docker.Machines(ctx)
	if err != nil || slices.ContainsFunc(machines, func(m docker.FoundMachine) bool { return m.Fleet != "" }) {
		return err
	}
	networks, err := f.docker.Networks(ctx)
	if err != nil || slices.ContainsFunc(networks, func(n docker.Network) bool { return n.Fleet != "" }) {
		return err
	}
	images, err := f.docker.ImagesNamed(ctx, hostImages+":*")
	errs := []error{err}
	for _, image := range images {
		errs = append(errs, f.docker.RemoveImage(ctx, image))
	}
	return errors.Join(errs...)
}

// alone is withCluster while no other run changes the fleet.
func alone(ctx context.Context, options Options, do func(*fleet) error) error {
	return withCluster(ctx, options, func(f *fleet) error {
		release, err := f.lock()
		if err != nil {
			return err
		}
		defer release()
		return do(f)
	})
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

// withCluster does something to a cluster that exists.
func withCluster(ctx context.Context, options Options, do func(*fleet) error) error {
	return withFleet(ctx, options, func(f *fleet) error {
		if err := f.mustExist(ctx); err != nil {
			return err
		}
		return do(f)
	})
}

func (f *fleet) remove(ctx context.Context) error {
	return errors.Join(f.docker.RemoveFleet(ctx, f.Name), os.RemoveAll(f.sharedDir()), os.RemoveAll(f.programsPath()))
}
