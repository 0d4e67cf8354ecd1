package kubelet

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
)

// sharedFile exists if kube-bootstrap has mounted Dir on itself.
const sharedFile = host.StateDir + "/kubelet-mount"

// ShareMounts makes the mounts that the kubelet creates for pods visible to the
// container runtime. It must also be called at boot, before Docker starts, because
// only systemd makes all mounts shared.
func ShareMounts(files host.Files) error {
	dir := files.Path(Dir)
	shared, err := filesystem.SharedMount(dir)
	if err != nil || shared {
		return err
	}
	if err := files.MkdirAll(Dir); err != nil {
		return err
	}
	if err := files.Write(sharedFile, nil, 0o600); err != nil {
		return err
	}
	return filesystem.ShareMount(dir)
}

// unmount removes the mounts of pods, and the mount of ShareMounts.
func unmount(files host.Files) error {
	mounted, err := filesystem.MountedOnItself(files.Path(Dir))
	if err != nil {
		return err
	}
	if !mounted && !files.Exists(sharedFile) {
		return filesystem.UnmountInside(files.Path(Dir))
	}
	if err := filesystem.UnmountBelow(files.Path(Dir)); err != nil {
		return err
	}
	return files.Remove(sharedFile)
}
