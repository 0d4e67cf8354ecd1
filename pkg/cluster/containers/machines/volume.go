package machines

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Volumes are the volumes of a cluster.
type Volumes struct {
	engine  *docker.Engine
	cluster string
	helpers helpers
}

// Volume is a volume of a cluster.
type Volume = volume.Volume

// Make makes a volume of the cluster, unless one of that name exists.
func (v Volumes) Make(ctx context.Context, name string, labels map[string]string) error {
	all := clusterLabels(v.cluster)
	maps.Copy(all, labels)
	return makeVolume(ctx, v.engine, name, all)
}

func makeVolume(ctx context.Context, engine *docker.Engine, name string, labels map[string]string) error {
	_, err := engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: labels})
	return step.Wrap(err, "make volume %s", name)
}

// List lists the volumes of the cluster.
func (v Volumes) List(ctx context.Context) ([]Volume, error) {
	list, err := v.engine.VolumeList(ctx, client.VolumeListOptions{Filters: ofCluster(v.cluster)})
	return list.Items, err
}

// Remove removes a volume. A missing volume is not an error.
func (v Volumes) Remove(ctx context.Context, name string) error {
	return removeVolume(ctx, v.engine, name)
}

func removeVolume(ctx context.Context, engine *docker.Engine, name string) error {
	_, err := engine.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
	return step.Wrap(docker.Gone(err), "remove volume %s", name)
}

// VolumeCopy describes copies of a volume.
type VolumeCopy struct {
	Image string // contains find, xargs and cp of GNU
	From  string
	To    []string

	// Constant is a shell command that prints the paths of files that are never changed in
	// place, each with a zero byte after it. The volumes share these files.
	Constant string
	Without  []string // paths that are removed from the copies
}

// copyScript copies the directory $3 to each of the following directories, to all at the same
// time. It first empties the target, because an earlier copy may have been killed. It creates
// hard links of the files that the command $1 prints, if the file system allows it, and copies
// all other files. It removes the paths $2 from the copies. It fails if it cannot copy extended
// attributes, which overlay file systems need.
const copyScript = `set -e
list=$1 without=$2
shift 2
cd "$1"
shift
copy() {
	find "$1" -mindepth 1 -delete
	sh -c "$list" 2>/dev/null | xargs -0r cp -dl --parents --preserve=mode,ownership,timestamps -t "$1" 2>/dev/null || true
	cp -dRn --preserve=mode,ownership,timestamps,links,xattr --reflink=auto --sparse=auto . "$1"
	(cd "$1" && rm -rf $without)
}
running=
for to in "$@"; do
	copy "$to" &
	running="$running $!"
done
for one in $running; do wait "$one"; done`

// Copy copies one volume to others, which exist. An engine in a virtual
// machine may refuse to mount its own directory of volumes. The copies then share no files.
func (v Volumes) Copy(ctx context.Context, c VolumeCopy) error {
	args, apart := []string{c.Constant, strings.Join(c.Without, " ")}, []mount.Mount{}
	for _, name := range append([]string{c.From}, c.To...) {
		path := volumesDir + name + "/_data"
		args, apart = append(args, path), append(apart, mount.Mount{Type: mount.TypeVolume, Source: name, Target: path})
	}
	run := func(mounts []mount.Mount) error {
		_, err := v.run(ctx, c.Image, copyScript, mounts, args...)
		return err
	}
	mounts, err := v.mountTogether(ctx, apart)
	if err != nil {
		return step.Wrap(err, "copy volume %s", c.From)
	}
	if err = run(mounts); err != nil && ctx.Err() == nil && mounts[0].Type == mount.TypeBind {
		err = run(apart)
	}
	return step.Wrap(err, "copy volume %s", c.From)
}

// volumesDir is the directory of the volumes in a container that copies them.
const volumesDir = "/volumes/"

// mountTogether returns one mount of the directory of all volumes, because the kernel creates
// no hard link across two mounts, even of the same file system. It also mounts each volume, so that
// the engine refuses to remove it. It returns only the volumes if they are in different directories
// of the engine's host.
func (v Volumes) mountTogether(ctx context.Context, volumes []mount.Mount) ([]mount.Mount, error) {
	roots := map[string]bool{}
	for _, one := range volumes {
		found, err := v.engine.VolumeInspect(ctx, one.Source, client.VolumeInspectOptions{})
		if err != nil {
			return nil, err
		}
		root, inside := strings.CutSuffix(found.Volume.Mountpoint, "/"+one.Source+"/_data")
		roots[root] = inside && found.Volume.Driver == "local"
	}
	for root, local := range roots {
		if local && len(roots) == 1 {
			together := []mount.Mount{{Type: mount.TypeBind, Source: root, Target: volumesDir}}
			for _, v := range volumes {
				together = append(together, mount.Mount{
					Type: mount.TypeVolume, Source: v.Source, Target: "/used/" + v.Source, ReadOnly: true,
				})
			}
			return together, nil
		}
	}
	return volumes, nil
}

// Measure returns the size of volumes and the free space of their file system, in bytes.
func (v Volumes) Measure(ctx context.Context, image string, volumes []string) (used, free int64, err error) {
	const script = `cd /volumes && du -sxk --total * | tail -n 1 | cut -f 1 && df -k --output=avail "$(ls | head -n 1)" | tail -n 1`
	var mounts []mount.Mount
	for _, name := range volumes {
		mounts = append(mounts, mount.Mount{
			Type: mount.TypeVolume, Source: name, Target: "/volumes/" + name, ReadOnly: true,
		})
	}
	out, err := v.run(ctx, image, script, mounts)
	if err != nil {
		return 0, 0, step.Wrap(err, "measure the volumes of %s", v.cluster)
	}
	if _, err := fmt.Sscan(out, &used, &free); err != nil {
		return 0, 0, fmt.Errorf("measure the volumes of %s: %q: %w", v.cluster, out, err)
	}
	return used << 10, free << 10, nil
}

// run runs a script in a container with these mounts, with the rights of root to files.
func (v Volumes) run(ctx context.Context, image, script string, mounts []mount.Mount, args ...string) (string, error) {
	return v.helpers.output(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: image, Entrypoint: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Cmd: []string{},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", Mounts: mounts,
			// SELinux admits a container to volumes, but not to the directory that contains them
			SecurityOpt: []string{"label=disable"},
			CapDrop:     []string{"ALL"}, CapAdd: []string{
				"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SYS_ADMIN",
			},
		},
	})
}

// Fill writes a file into a volume of the cluster, which it makes if it is missing,
// through the API: the engine's machine need not see paths of this machine.
func (v Volumes) Fill(ctx context.Context, volume, image string, file docker.SentFile) error {
	if err := v.Make(ctx, volume, nil); err != nil {
		return err
	}
	const target = "/volume"
	carrier := client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: []string{"/bin/true"}},
		HostConfig: &container.HostConfig{NetworkMode: "none",
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: target}}},
	}
	return v.helpers.with(ctx, carrier, func(id string) error { return v.engine.Send(ctx, id, target, file) })
}
