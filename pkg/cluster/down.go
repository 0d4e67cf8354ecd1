package cluster

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// alone keeps other runs out of an existing cluster.
var alone = session.Requirements{Needs: session.ACluster, Lock: session.ClusterLock}

// Down stops all hosts of a cluster at the same time. Their data stays, so that
// Up can start them again. Down does nothing if no host runs.
func Down(ctx context.Context, options Options) error {
	return containers.Do(ctx, options.Selection, alone, func(c containers.Cluster, state topology.State) error {
		return c.Machines.SwitchOff(ctx, append(state.Names(), testhost.ServiceContainers(c.Name)...)...)
	})
}

// Clean removes a cluster and everything that was made for it: hosts, volumes,
// network, entries in the user's kubeconfig, certificates, and the host images
// and prepared disks unless another cluster uses them or KeepImages is set. The
// cache of downloads and builds stays.
func Clean(ctx context.Context, options Options) error {
	return containers.Do(ctx, options.Selection, alone, func(c containers.Cluster, _ topology.State) error {
		err := errors.Join(removePrivate(ctx, c.Session.Selection), remove(ctx, c))
		if options.KeepImages {
			return err
		}
		return errors.Join(err, removeShared(ctx, c))
	})
}

// removePrivate removes the entries in the user's kubeconfig, and then the private directory,
// which contains the record of these entries.
func removePrivate(ctx context.Context, options session.Selection) error {
	if err := kubeconfig.Unmerge(ctx, options); err != nil {
		return err
	}
	return os.RemoveAll(options.PrivateDir())
}

// removeShared removes what all clusters share, unless another cluster may be about to use it. A
// host image that a container of the user uses stays.
func removeShared(ctx context.Context, c containers.Cluster) error {
	clusters, err := c.Session.Clusters(ctx)
	if err != nil || len(clusters) > 0 {
		return err
	}
	images, err := c.Engine.Images().Named(ctx, testhost.Images+":*")
	return errors.Join(err, c.Disks.Remove(ctx), c.Engine.Images().RemovePrograms(ctx),
		host.Each(images, func(image string) error { return c.Engine.Images().RemoveUnused(ctx, image) }))
}

// replaceHosts removes all hosts, and records that next is created after them.
func replaceHosts(ctx context.Context, c containers.Cluster, next session.Record) error {
	next.Phase = session.Removing
	if err := c.Session.WriteRecord(ctx, &next); err != nil {
		return err
	}
	for _, key := range []string{session.RestoringNote, session.ComponentsNote, session.FirstNote} {
		if err := c.Session.Notes().Forget(ctx, key); err != nil {
			return err
		}
	}
	if err := snapshot.RemoveHosts(ctx, c); err != nil {
		return err
	}
	next.Phase = session.Creating
	return c.Session.WriteRecord(ctx, &next)
}

// remove removes the cluster with its snapshots. If it is killed, the record
// tells the next `cluster up` to remove the rest first.
func remove(ctx context.Context, c containers.Cluster) error {
	if err := c.Session.WriteRecord(ctx, &session.Record{Phase: session.Removing}); err != nil {
		return err
	}
	return errors.Join(snapshot.ForgetAll(ctx, c.Session), c.Remove(ctx, session.RecordNote),
		c.Disks.RemoveOfCluster(ctx, ""),
		os.RemoveAll(c.Session.SharedDir()), os.RemoveAll(c.Session.ComponentsPath()))
}

// removeBegun removes what a failed run of Up has created. The record of a
// cluster that was to be created again stays, and so do snapshots of an earlier
// cluster of this name.
func removeBegun(ctx context.Context, c containers.Cluster) error {
	r, err := c.Session.Record(ctx)
	if err != nil {
		return err
	}
	if r != nil {
		return replaceHosts(ctx, c, *r)
	}
	kept, err := snapshot.Names(ctx, c.Session)
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		return errors.Join(remove(ctx, c), c.ForgetEngine())
	}
	if err := replaceHosts(ctx, c, session.Record{}); err != nil {
		return err
	}
	return c.Session.WriteRecord(ctx, nil)
}

// CleanLosses lists what Clean removes for good: hosts, snapshots and the images
// of the local registry. Remains of an interrupted run are no loss.
func CleanLosses(ctx context.Context, options Options) ([]string, error) {
	c, state, err := containers.Begin(ctx, options.Selection, session.Requirements{Needs: session.ACluster})
	if err != nil {
		return nil, err
	}
	defer c.Session.Close()
	all, err := losses(ctx, c.Session, state, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	volumes, err := c.Volumes.List(ctx)
	if slices.ContainsFunc(volumes, func(v machines.Volume) bool { return v.Name == testhost.RegistryName(c.Name) }) {
		all = append(all, "the images of the local registry")
	}
	return all, err
}

// RecreateLosses lists what Up with Options.Recreate removes for good.
func RecreateLosses(ctx context.Context, options Options) ([]string, error) {
	return session.Get(ctx, options.Selection, session.Requirements{},
		func(s *session.Session, state topology.State) ([]string, error) {
			return losses(ctx, s, state, func(name string) bool { return name == snapshot.First })
		})
}

// losses lists all hosts, and the snapshots that are removed with them.
func losses(
	ctx context.Context, s *session.Session, state topology.State, goes func(snapshot string) bool,
) (all []string, err error) {
	for _, name := range state.Names() {
		all = append(all, hostLoss(name))
	}
	snapshots, err := snapshot.Losses(ctx, s, goes)
	return append(all, snapshots...), err
}

func hostLoss(name string) string { return "host " + name + " with its volumes" }
