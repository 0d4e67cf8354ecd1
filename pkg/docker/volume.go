package docker

import (
	"context"
	"fmt"
	"maps"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Volume is a volume of a cluster.
type Volume struct {
	Name   string
	Labels map[string]string
}

// MakeVolume makes a volume of the cluster, unless one of that name exists.
func (c Cluster) MakeVolume(ctx context.Context, name string, labels map[string]string) error {
	all := map[string]string{OurLabel: clusterOwner, ClusterLabel: c.name}
	maps.Copy(all, labels)
	_, err := c.api.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: all})
	return doing("make volume", name, err)
}

// Volumes lists the volumes of the cluster.
func (c Cluster) Volumes(ctx context.Context) ([]Volume, error) {
	list, err := c.api.VolumeList(ctx, client.VolumeListOptions{Filters: c.filter()})
	if err != nil {
		return nil, err
	}
	var all []Volume
	for _, v := range list.Items {
		all = append(all, Volume{Name: v.Name, Labels: v.Labels})
	}
	return all, nil
}

// RemoveVolume removes a volume. A missing volume is not an error.
func (c Cluster) RemoveVolume(ctx context.Context, name string) error {
	_, err := c.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
	return doing("remove volume", name, gone(err))
}

// copyScript begins with an empty target, as an earlier copy may have been killed. It fails
// if it cannot copy extended attributes, which overlay file systems need.
const copyScript = `set -e
find /to -mindepth 1 -delete
exec cp -dR --preserve=mode,ownership,timestamps,links,xattr --reflink=auto --sparse=auto /from/. /to/`

// CopyVolume copies one volume of the cluster to another, with the programs of an image. The
// two share their blocks where the file system can.
func (c Cluster) CopyVolume(ctx context.Context, image, from, to string) error {
	_, err := c.inVolumes(ctx, image, copyScript, []mount.Mount{
		{Type: mount.TypeVolume, Source: from, Target: "/from", ReadOnly: true},
		{Type: mount.TypeVolume, Source: to, Target: "/to"},
	})
	return doing("copy volume", from, err)
}

// Measure returns the size of volumes and the free space of their file system, in bytes.
func (c Cluster) Measure(ctx context.Context, image string, volumes []string) (used, free int64, err error) {
	const script = `cd /volumes && du -sxk --total * | tail -n 1 | cut -f 1 && df -k --output=avail "$(ls | head -n 1)" | tail -n 1`
	var mounts []mount.Mount
	for _, v := range volumes {
		mounts = append(mounts, mount.Mount{Type: mount.TypeVolume, Source: v, Target: "/volumes/" + v, ReadOnly: true})
	}
	out, err := c.inVolumes(ctx, image, script, mounts)
	if err != nil {
		return 0, 0, doing("measure the volumes of", c.name, err)
	}
	if _, err := fmt.Sscan(out, &used, &free); err != nil {
		return 0, 0, fmt.Errorf("measure the volumes of %s: %q: %w", c.name, out, err)
	}
	return used << 10, free << 10, nil
}

// inVolumes runs a script beside volumes, with the rights of root to files.
func (c Cluster) inVolumes(ctx context.Context, image, script string, mounts []mount.Mount) (string, error) {
	return c.output(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: []string{"/bin/sh", "-c", script}, Cmd: []string{}},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", Mounts: mounts,
			CapDrop: []string{"ALL"}, CapAdd: []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SYS_ADMIN"},
		},
	})
}

// RemoveHelpers removes what a killed run has left at work for the cluster.
func (c Cluster) RemoveHelpers(ctx context.Context) error {
	return c.removeContainers(ctx, c.filter().Add("label", OurLabel+"="+helper))
}
