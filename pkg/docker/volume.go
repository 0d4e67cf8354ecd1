package docker

import (
	"context"
	"fmt"
	"maps"
	"strings"

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

// VolumeCopy describes copies of a volume.
type VolumeCopy struct {
	Image string // with the programs that copy
	From  string
	To    []string

	// Constant is a shell command. It lists paths of files, each with a zero byte after it,
	// that nobody changes before they are removed: the volumes share these files.
	Constant string
	Without  []string // paths that the copies do not have
}

// copyScript copies the directory $3 to each of the directories that follow. It begins with an
// empty target, as an earlier copy may have been killed, and fails if it cannot copy extended
// attributes, which overlay file systems need. It links the files that the command $1 lists,
// where the file system can, and removes the paths $2 from the copies.
const copyScript = `set -e
list=$1 without=$2
shift 2
cd "$1"
while [ $# -gt 1 ]; do
	find "$2" -mindepth 1 -delete
	sh -c "$list" 2>/dev/null | xargs -0r cp -dl --parents --preserve=mode,ownership,timestamps -t "$2" 2>/dev/null || true
	cp -dRn --preserve=mode,ownership,timestamps,links,xattr --reflink=auto --sparse=auto . "$2"
	(cd "$2" && rm -rf $without)
	shift
done`

// CopyVolume copies one volume of the cluster to others, which exist. If the engine refuses to
// mount them together, as one in a virtual machine may do, the copies share nothing.
func (c Cluster) CopyVolume(ctx context.Context, v VolumeCopy) error {
	args, apart := []string{v.Constant, strings.Join(v.Without, " ")}, []mount.Mount{}
	for _, name := range append([]string{v.From}, v.To...) {
		path := volumesDir + name + "/_data"
		args, apart = append(args, path), append(apart, mount.Mount{Type: mount.TypeVolume, Source: name, Target: path})
	}
	together, err := c.mountTogether(ctx, apart)
	if err == nil && together != nil {
		if _, err := c.inVolumes(ctx, v.Image, copyScript, together, args...); err == nil || ctx.Err() != nil {
			return doing("copy volume", v.From, err)
		}
	}
	if err == nil {
		_, err = c.inVolumes(ctx, v.Image, copyScript, apart, args...)
	}
	return doing("copy volume", v.From, err)
}

// volumesDir contains the volumes in a container that copies, as in the engine's directory.
const volumesDir = "/volumes/"

// mountTogether returns one mount instead of those of the volumes, or nil if they are not in
// one directory of the engine's host: the kernel links no file of one mount into another, not
// even on the same file system.
func (c Cluster) mountTogether(ctx context.Context, volumes []mount.Mount) ([]mount.Mount, error) {
	roots := map[string]bool{}
	for _, v := range volumes {
		found, err := c.api.VolumeInspect(ctx, v.Source, client.VolumeInspectOptions{})
		if err != nil {
			return nil, err
		}
		root, inside := strings.CutSuffix(found.Volume.Mountpoint, "/"+v.Source+"/_data")
		roots[root] = inside && found.Volume.Driver == "local"
	}
	for root, local := range roots {
		if local && len(roots) == 1 {
			return []mount.Mount{{Type: mount.TypeBind, Source: root, Target: volumesDir}}, nil
		}
	}
	return nil, nil
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
func (c Cluster) inVolumes(ctx context.Context, image, script string, mounts []mount.Mount, args ...string) (string, error) {
	return c.output(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Cmd: []string{}},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", Mounts: mounts,
			SecurityOpt: []string{"label=disable"}, // SELinux admits a container to volumes, but not to the directory that contains them
			CapDrop:     []string{"ALL"}, CapAdd: []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SYS_ADMIN"},
		},
	})
}

// RemoveHelpers removes what a killed run has left at work for the cluster.
func (c Cluster) RemoveHelpers(ctx context.Context) error {
	return c.removeContainers(ctx, c.filter().Add("label", OurLabel+"="+helper))
}
