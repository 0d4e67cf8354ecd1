package docker

import (
	"context"
	"fmt"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Volume is a volume of a cluster.
type Volume struct {
	Name   string
	Labels map[string]string
}

// MakeVolume makes a volume of a cluster. One of that name that is there already
// is left as it is.
func (d *Engine) MakeVolume(ctx context.Context, cluster, name string, labels map[string]string) error {
	all := map[string]string{OurLabel: "cluster", ClusterLabel: cluster}
	for key, value := range labels {
		all[key] = value
	}
	if _, err := d.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: all}); err != nil {
		return fmt.Errorf("make volume %s: %w", name, err)
	}
	return nil
}

// Volumes lists the volumes of a cluster.
func (d *Engine) Volumes(ctx context.Context, cluster string) ([]Volume, error) {
	list, err := d.VolumeList(ctx, client.VolumeListOptions{Filters: labelFilter(ClusterLabel, cluster)})
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
func (d *Engine) RemoveVolume(ctx context.Context, name string) error {
	_, err := d.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
	return doing("remove volume", name, gone(err))
}

func labelFilter(label, cluster string) client.Filters {
	return client.Filters{}.Add("label", label+"="+cluster)
}

// copyScript begins with an empty target, as an earlier copy may have been
// killed. What cannot be copied whole, extended attributes included, which
// overlay file systems live of, is a failure.
const copyScript = `set -e
find /to -mindepth 1 -delete
exec cp -dR --preserve=mode,ownership,timestamps,links,xattr --reflink=auto --sparse=auto /from/. /to/`

// CopyVolume makes one volume of a cluster the same as another, by means of what
// an image holds. Where the file system can, the two share their blocks.
func (d *Engine) CopyVolume(ctx context.Context, cluster, image, from, to string) error {
	_, err := d.inVolumes(ctx, cluster, image, copyScript, []mount.Mount{
		{Type: mount.TypeVolume, Source: from, Target: "/from", ReadOnly: true},
		{Type: mount.TypeVolume, Source: to, Target: "/to"},
	})
	return doing("copy volume", from, err)
}

// Measure tells how many bytes volumes hold, and how many are free where they
// lie.
func (d *Engine) Measure(ctx context.Context, cluster, image string, volumes []string) (used, free int64, err error) {
	const script = `cd /volumes && du -sxk --total * | tail -n 1 | cut -f 1 && df -k --output=avail "$(ls | head -n 1)" | tail -n 1`
	var mounts []mount.Mount
	for _, v := range volumes {
		mounts = append(mounts, mount.Mount{Type: mount.TypeVolume, Source: v, Target: "/volumes/" + v, ReadOnly: true})
	}
	out, err := d.inVolumes(ctx, cluster, image, script, mounts)
	if err != nil {
		return 0, 0, doing("measure the volumes of", cluster, err)
	}
	if _, err := fmt.Sscan(out, &used, &free); err != nil {
		return 0, 0, fmt.Errorf("measure the volumes of %s: %q: %w", cluster, out, err)
	}
	return used << 10, free << 10, nil
}

// inVolumes runs a script beside volumes and returns what it wrote. It may do
// to files whatever the root of a machine may.
func (d *Engine) inVolumes(ctx context.Context, cluster, image, script string, mounts []mount.Mount) (out string, err error) {
	options := client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: []string{"/bin/sh", "-c", script}, Cmd: []string{}, Labels: helperLabels(cluster)},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", Mounts: mounts,
			CapDrop: []string{"ALL"}, CapAdd: []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SYS_ADMIN"},
		},
	}
	return out, d.withHelper(ctx, options, func(id string) error {
		out, err = d.output(ctx, id)
		return err
	})
}

// RemoveHelpers removes what still works for a cluster on behalf of a run that
// was killed.
func (d *Engine) RemoveHelpers(ctx context.Context, cluster string) error {
	return d.removeContainers(ctx, labelFilter(ClusterLabel, cluster).Add("label", OurLabel+"="+helper))
}
