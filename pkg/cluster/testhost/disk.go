package testhost

import (
	"context"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// constantFiles lists the large files that no host changes: the program, and files of image
// layers that were never the upper layer of a container. The kernel makes a directory in the
// work directory of an upper layer at its first mount, and it stays. Small files are not
// listed, because a container sees how many links a file has, and cron, for example, rejects a
// table with two.
const constantFiles = `find host/bin kube-bootstrap/bin -type f -print0
for layer in containerd/*/snapshots/*/fs docker*/overlay2/*/diff; do
	[ -n "$(ls -A "${layer%/*}/work")" ] || find "$layer" -type f -size +1M -print0
done`

// notCopied lists what a copy for another host does not have: settings and records of
// kube-bootstrap except those of the images, IDs, and a secret.
var notCopied = []string{
	"kube-bootstrap/[!i]*", "docker/engine-id", "docker-bootstrap/engine-id",
	"containerd/io.containerd.grpc.v1.introspection/uuid", "systemd/random-seed",
}

// RemoveRemains returns the step that removes the volumes of missing hosts, and first the
// container that still copies to them if `cluster up` was killed.
func (u Setup) RemoveRemains(missing []topology.Node) step.Step {
	var volumes []string
	for _, n := range missing {
		volumes = append(volumes, NewMachine(u.Session, u.Topology, n).config.Volumes[dataPath])
	}
	cluster := u.Session.Cluster()
	return step.When("remove what a killed run left", "remove the volumes of missing hosts", func(ctx context.Context) (bool, error) {
		all, err := cluster.Volumes(ctx)
		return slices.ContainsFunc(all, func(v docker.Volume) bool { return slices.Contains(volumes, v.Name) }), err
	}, func(ctx context.Context) error {
		if err := cluster.RemoveHelpers(ctx); err != nil {
			return err
		}
		return docker.Together(volumes, func(name string) error { return cluster.RemoveVolume(ctx, name) })
	})
}

// CopyDisk copies the volume of a host that does not run, or is paused, to a volume that
// exists. The copy shares the large files of images with it, so that it needs little time and
// space.
func CopyDisk(ctx context.Context, s *session.Session, image, from, to string) error {
	return s.Cluster().CopyVolume(ctx, docker.VolumeCopy{Image: image, From: from, To: []string{to}, Constant: constantFiles})
}

// CopyTo returns the step that gives copies of the disk of this host to new hosts. It pauses
// the host meanwhile: the copies are as after a power failure.
func (m Machine) CopyTo(others []Machine) step.Step {
	return step.Always(fmt.Sprintf("copy the disk of %s to %d hosts", m.config.Name, len(others)), func(ctx context.Context) error {
		config := docker.VolumeCopy{Image: m.config.Image, From: m.config.Volumes[dataPath], Constant: constantFiles, Without: notCopied}
		for _, other := range others {
			config.To = append(config.To, other.config.Volumes[dataPath])
		}
		for _, volume := range config.To {
			if err := m.session.Cluster().MakeVolume(ctx, volume, nil); err != nil {
				return err
			}
		}
		return m.session.Machines().WhilePaused(ctx, []string{m.config.Name}, func() error { return m.session.Cluster().CopyVolume(ctx, config) })
	})
}
