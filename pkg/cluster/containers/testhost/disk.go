package testhost

import (
	"context"
	_ "embed" // constant-files.sh
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// constantFiles prints the paths of files that no host changes in place: the program, and files
// of more than 64 KiB in layers of images. It omits the layers of containers, whose work
// directory is not empty: the kernel creates a directory there at the first mount, and does not
// remove it. It omits small files, because programs in containers may check the number of hard
// links. For example, cron rejects a table with two links.
//
//go:embed scripts/constant-files.sh
var constantFiles string

// notCopied lists the paths that a copy for another host must not contain: the settings and
// records of kube-bootstrap, except its records of images; IDs; and the random seed.
var notCopied = []string{
	"kube-bootstrap/[!i]*", "docker/engine-id", "docker-bootstrap/engine-id",
	"containerd/io.containerd.grpc.v1.introspection/uuid", "systemd/random-seed",
}

// RemoveRemains returns the step that removes the volumes of missing hosts. A container of a
// killed `cluster up` may still copy to them, so the step removes that container first.
func (u Setup) RemoveRemains(missing []topology.ClusterNode) step.Step {
	var volumes []string
	for _, n := range missing {
		volumes = append(volumes, NewMachine(u.Cluster, u.Topology, n).config.Volumes[dataPath])
	}
	cluster := u.Cluster
	return step.When("remove-leftovers", "remove what a killed run left", "remove the volumes of missing hosts",
		func(ctx context.Context) (bool, error) {
			all, err := cluster.Volumes.List(ctx)
			return slices.ContainsFunc(all, func(v machines.Volume) bool {
				return slices.Contains(volumes, v.Name)
			}), err
		}, func(ctx context.Context) error {
			if err := cluster.RemoveHelpers(ctx); err != nil {
				return err
			}
			return host.Together(volumes, func(name string) error { return cluster.Volumes.Remove(ctx, name) })
		})
}

// CopyDisk copies the volume of a stopped or paused host, or a prepared disk, to existing volumes.
// All share the large files of images, so the copies need little time and disk space.
func CopyDisk(ctx context.Context, c containers.Cluster, image, from string, to ...string) error {
	return c.Volumes.Copy(ctx, machines.VolumeCopy{Image: image, From: from, To: to, Constant: constantFiles})
}

// CopyTo returns the step that copies the disk of this host to new hosts, and to a prepared disk
// if there is room. The host is paused during the copy.
func (m Machine) CopyTo(others []Machine, setup Setup) step.Step {
	return step.Always(step.IDOf("copy-disk", m.config.Name), "copy the disk of "+m.config.Name,
		func(ctx context.Context) error {
			targets, err := volumesOf(ctx, others)
			if err != nil {
				return err
			}
			disk, err := setup.Disk.begin(ctx, m.cluster, setup.Facts.FreeBytes)
			if err != nil {
				return err
			}
			if disk != "" {
				targets = append(targets, disk)
			}
			if len(targets) == 0 {
				return nil
			}
			config := machines.VolumeCopy{
				Image: m.config.Image, From: m.config.Volumes[dataPath], To: targets, Constant: constantFiles,
				Without: notCopied,
			}
			err = m.cluster.Machines.WhilePaused(ctx, []string{m.config.Name},
				func() error { return m.cluster.Volumes.Copy(ctx, config) })
			if err != nil || disk == "" {
				return err
			}
			return m.cluster.Disks.End(ctx, disk, setup.Disk.Key)
		})
}

// volumesOf makes the volumes of new hosts.
func volumesOf(ctx context.Context, machines []Machine) (names []string, err error) {
	for _, m := range machines {
		name := m.config.Volumes[dataPath]
		names, err = append(names, name), errors.Join(err, m.cluster.Volumes.Make(ctx, name, nil))
	}
	return names, err
}
