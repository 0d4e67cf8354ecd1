package kubelet

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
)

// sharedFile says that it was we who made a mount of Dir on itself.
const sharedFile = host.StateDir + "/kubelet-mount"

// ShareMounts lets mounts that the kubelet makes for pods reach the container
// runtime. On a host where systemd has not done so, it must also be called at
// boot, before Docker starts.
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

// unmount takes away what pods had mounted, and our own mount of Dir on itself.
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
