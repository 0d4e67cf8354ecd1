package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Restore replaces the hosts of a cluster by those of a snapshot, and waits until
// they are Ready. It removes the present state of the hosts. A note with the name of
// the snapshot makes the next run continue if this one is killed. The caller has
// session.ClusterLock.
func Restore(ctx context.Context, setup testhost.Setup, name string) error {
	c, err := contentsNamed(ctx, setup.Cluster.Session, name)
	if err != nil {
		return err
	}
	if c.Format > format {
		return &step.Problem{Name: "snapshot-version",
			Text:   fmt.Sprintf("snapshot %s is of form %d, this program knows %d", name, c.Format, format),
			Remedy: "use the kube-bootstrap that made it"}
	}
	if err := whole(ctx, setup.Cluster, c); err != nil {
		return err
	}
	for inside, outside := range c.Ports {
		setup.APIPort, setup.Publish = int(inside), inside == outside
	}
	if c.Settings != nil {
		made, err := c.Settings.Settings.Config()
		if err != nil {
			return err
		}
		setup.Registry = testhost.RegistryOf(made)
	}
	setup.Subnet = c.Subnet
	return setup.Cluster.Session.Run(ctx, restoring{setup, c}.plan())
}

// whole returns the problem that the engine lacks parts of a snapshot. Restore must
// return it before it removes the hosts. `docker system prune -a` removes the images
// of snapshots, because no container uses them, but not their volumes.
func whole(ctx context.Context, c containers.Cluster, saved contents) error {
	has, err := c.Images(ctx)
	if err != nil {
		return err
	}
	volumes, err := c.Volumes.List(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		has = append(has, v.Name)
	}
	lost := slices.DeleteFunc(saved.parts(), func(part string) bool { return slices.Contains(has, part) })
	if len(lost) == 0 {
		return nil
	}
	return &step.Problem{Name: "snapshot-incomplete",
		Text: "snapshot " + saved.Snapshot.Name + " of cluster " + c.Name +
			" cannot be restored: the Docker engine lacks " + strings.Join(lost, ", "),
		Remedy: "restore another snapshot, or create the cluster again with `kube-bootstrap cluster up --recreate " +
			"--name " + c.Name + "`"}
}

// parts returns the names of the images and volumes of a snapshot.
func (c contents) parts() (all []string) {
	for _, m := range c.Machines {
		all = append(all, rootOf(m.Name, c.Snapshot.Name))
		for _, volume := range testhost.UnsharedVolumes(m) {
			all = append(all, copyOf(volume, c.Snapshot.Name))
		}
	}
	return all
}

type restoring struct {
	testhost.Setup
	contents contents
}

func (r restoring) plan() step.Plan {
	name := r.contents.Snapshot.Name
	var copies []step.Step
	var hosts []string
	for _, m := range r.contents.Machines {
		copies, hosts = append(copies, r.copyBack(m)), append(hosts, m.Name)
	}
	return append(step.Plan{
		{step.Always("remove-leftovers", "remove what a killed run left", func(ctx context.Context) error {
			return sweep(ctx, r.Cluster)
		})},
		{step.Always("begin-restore", "begin to restore snapshot "+name, r.begin)},
		{step.Always("remove-hosts", "remove the hosts as they are", func(ctx context.Context) error {
			return RemoveHosts(ctx, r.Cluster)
		})},
		{
			testhost.Network(r.Cluster, r.Subnet), r.Share(),
			step.Always("settings", "remember the settings", func(ctx context.Context) error {
				return r.Cluster.Session.WriteRecord(ctx, r.contents.Settings)
			}),
			step.Always("engine-host", "inspect the host of the engine", func(ctx context.Context) (err error) {
				*r.Facts, err = r.Cluster.EngineHost(ctx, rootOf(hosts[0], name))
				return err
			}),
		},
		copies,
		{step.Always("end-restore", "end to restore snapshot "+name, func(ctx context.Context) error {
			return r.Cluster.Session.Notes().Forget(ctx, session.RestoringNote)
		})},
	}, r.StartShared(hosts)...)
}

func (r restoring) begin(ctx context.Context) error {
	notes := r.Cluster.Session.Notes()
	if err := notes.Set(ctx, session.RestoringNote, r.contents.Snapshot.Name); err != nil {
		return err
	}
	var err error
	if r.contents.Components == "" {
		err = notes.Forget(ctx, session.ComponentsNote)
	} else {
		err = notes.Set(ctx, session.ComponentsNote, r.contents.Components)
	}
	// the hosts are no longer those of the first time
	if err = errors.Join(err, notes.Forget(ctx, session.FirstNote)); err != nil {
		return err
	}
	// it may be the record of a removal, which the next run would continue instead
	return r.Cluster.Session.WriteRecord(ctx, nil)
}

// copyBack returns the step that creates and starts a host from its part of the snapshot.
func (r restoring) copyBack(m machines.Definition) step.Step {
	name := r.contents.Snapshot.Name
	again := m
	again.RootFS = rootOf(m.Name, name)
	return step.Always(step.IDOf("restore", m.Name), "put back "+m.Name, func(ctx context.Context) error {
		again.EngineHost = *r.Facts
		volumes := r.Cluster.Volumes
		for _, volume := range testhost.UnsharedVolumes(again) {
			if err := volumes.Make(ctx, volume, nil); err != nil {
				return err
			}
			if err := testhost.CopyDisk(ctx, r.Cluster, again.RootFS, copyOf(volume, name), volume); err != nil {
				return err
			}
		}
		return r.Cluster.Machines.Start(ctx, again)
	})
}
