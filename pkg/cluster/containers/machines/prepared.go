package machines

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// PreparedDisks are the volumes with which new hosts of any cluster can start, as a cluster sees them.
// An empty volume, the marker, is created last and states that a disk is complete.
type PreparedDisks struct {
	engine  *docker.Engine
	cluster string
}

const (
	preparedOwner    = "prepared-disk"                    // value of docker.OurLabel
	preparedKeyLabel = "kube-bootstrap.dev/prepared-key"  // of the marker: identifies the content
	preparedOfLabel  = "kube-bootstrap.dev/prepared-disk" // of the marker: the volume
)

// Find returns the volume of the complete disk with a key; "" if there is none.
func (p PreparedDisks) Find(ctx context.Context, key string) (disk string, err error) {
	all, err := p.list(ctx)
	for _, v := range all {
		of := v.Labels[preparedOfLabel]
		if v.Labels[preparedKeyLabel] == key && slices.ContainsFunc(all, func(v Volume) bool { return v.Name == of }) {
			disk = of
		}
	}
	return disk, err
}

// Begin replaces the disk that this cluster made by an empty volume, and returns its name; "" if
// another cluster copies from it now.
func (p PreparedDisks) Begin(ctx context.Context) (disk string, err error) {
	disk = p.own()
	if err := p.remove(ctx, disk); err != nil {
		return "", err
	}
	all, err := p.list(ctx)
	if err != nil || slices.ContainsFunc(all, func(v Volume) bool { return v.Name == disk }) {
		return "", err
	}
	return disk, p.make(ctx, disk, nil)
}

// End marks a disk as complete. It then removes all other complete disks that nothing uses,
// because each may take as much space as the images of a cluster. It keeps incomplete disks,
// because other clusters may still write to them.
func (p PreparedDisks) End(ctx context.Context, disk, key string) error {
	if err := p.make(ctx, markOf(disk), map[string]string{preparedKeyLabel: key, preparedOfLabel: disk}); err != nil {
		return err
	}
	all, err := p.list(ctx)
	return errors.Join(err, host.Each(all, func(v Volume) error {
		if other := v.Labels[preparedOfLabel]; other != "" && other != disk {
			return p.remove(ctx, other)
		}
		return nil
	}))
}

// RemoveOfCluster removes the disk that this cluster made, if it is incomplete or has the key, and
// nothing uses it.
func (p PreparedDisks) RemoveOfCluster(ctx context.Context, key string) error {
	all, err := p.list(ctx)
	otherKey := func(v Volume) bool { return v.Name == markOf(p.own()) && v.Labels[preparedKeyLabel] != key }
	if err != nil || slices.ContainsFunc(all, otherKey) {
		return err
	}
	return p.remove(ctx, p.own())
}

// Remove removes all disks that nothing uses, complete or not.
func (p PreparedDisks) Remove(ctx context.Context) error {
	all, err := p.list(ctx)
	return errors.Join(err, host.Each(all, func(v Volume) error {
		if v.Labels[preparedOfLabel] != "" {
			return nil
		}
		return p.remove(ctx, v.Name)
	}))
}

// remove removes a disk after its marker. Of a disk that is in use, it removes only the marker.
func (p PreparedDisks) remove(ctx context.Context, disk string) error {
	if err := removeVolume(ctx, p.engine, markOf(disk)); err != nil {
		return err
	}
	err := removeVolume(ctx, p.engine, disk)
	if errdefs.IsConflict(err) {
		return nil
	}
	return err
}

func (p PreparedDisks) own() string { return "kube-bootstrap.disk." + p.cluster }

func markOf(disk string) string { return disk + ".complete" }

func (p PreparedDisks) make(ctx context.Context, name string, labels map[string]string) error {
	all := map[string]string{docker.OurLabel: preparedOwner}
	maps.Copy(all, labels)
	return makeVolume(ctx, p.engine, name, all)
}

func (p PreparedDisks) list(ctx context.Context) ([]Volume, error) {
	disks := client.Filters{}.Add("label", docker.OurLabel+"="+preparedOwner)
	list, err := p.engine.VolumeList(ctx, client.VolumeListOptions{Filters: disks})
	return list.Items, err
}
