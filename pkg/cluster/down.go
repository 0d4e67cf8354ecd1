package cluster

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// Down stops all hosts of a cluster at the same time. Their data stays, so that
// Up can start them again. Down does nothing if no host runs. As for every
// other verb, a cluster that does not exist is a problem.
func Down(ctx context.Context, options Options) error {
	return alone(ctx, options, func(f *fleet) error {
		found, err := f.found(ctx)
		if err != nil {
			return err
		}
		return f.docker.SwitchOff(ctx, append(names(found), f.frontName())...)
	})
}

// Clean removes a cluster and everything that was made for it: hosts, volumes,
// network, entries in the user's kubeconfig, certificates, and the host images
// unless another cluster uses them or KeepImages is set. The cache of downloads
// and builds stays.
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

// alone is withCluster under the lock: no other run can change the cluster
// meanwhile.
func alone(ctx context.Context, options Options, do func(*fleet) error) error {
	return withCluster(ctx, options, func(f *fleet) error {
		release, err := f.lock(ctx)
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

// withCluster calls do for a cluster that exists.
func withCluster(ctx context.Context, options Options, do func(*fleet) error) error {
	return withFleet(ctx, options, func(f *fleet) error {
		if err := f.mustExist(ctx); err != nil {
			return err
		}
		return do(f)
	})
}
