package cluster

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// alone is the scope of commands on an existing cluster that no other run may
// change meanwhile.
var alone = session.Scope{Needs: session.ACluster, Lock: session.ClusterLock}

// Down stops all hosts of a cluster at the same time. Their data stays, so that
// Up can start them again. Down does nothing if no host runs.
func Down(ctx context.Context, options Options) error {
	return session.Do(ctx, options.Options, alone, func(s *session.Session, state topology.State) error {
		return s.Machines().SwitchOff(ctx, append(state.Names(), testhost.BesideHosts(s.Name)...)...)
	})
}

// Clean removes a cluster and everything that was made for it: hosts, volumes,
// network, entries in the user's kubeconfig, certificates, and the host images
// unless another cluster uses them or KeepImages is set. The cache of downloads
// and builds stays.
func Clean(ctx context.Context, options Options) error {
	return session.Do(ctx, options.Options, alone, func(s *session.Session, _ topology.State) error {
		release, err := s.Hold(ctx, session.SnapshotsLock)
		if err != nil {
			return err
		}
		defer release()
		err = errors.Join(kubeconfig.Unmerge(ctx, s.Options), remove(ctx, s), os.RemoveAll(s.PrivateDir()))
		if options.KeepImages {
			return err
		}
		return errors.Join(err, removeImages(ctx, s))
	})
}

// removeImages removes the host images, unless there is another cluster that may
// be about to use them.
func removeImages(ctx context.Context, s *session.Session) error {
	machines, err := s.Engine.Machines(ctx)
	if err != nil || slices.ContainsFunc(machines, func(m docker.FoundMachine) bool { return m.Cluster != "" }) {
		return err
	}
	networks, err := s.Engine.Networks(ctx)
	if err != nil || slices.ContainsFunc(networks, func(n docker.Network) bool { return n.Cluster != "" }) {
		return err
	}
	images, err := s.Engine.Images().Named(ctx, testhost.Images+":*")
	errs := []error{err}
	for _, image := range images {
		errs = append(errs, s.Engine.Images().Remove(ctx, image))
	}
	return errors.Join(errs...)
}

// RestoreSnapshot replaces all hosts by those of a snapshot.
func RestoreSnapshot(ctx context.Context, options Options, name string, emit func(session.Event)) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	return snapshot.Restore(ctx, options.Options, options.setup(options.Topology(options.Name, topology.State{})), name, emit)
}
