//go:build root

package filesystem

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestMountsBehindALink: an administrator moves a directory to another disk by a symbolic link. The
// table of mounts has the path of the target.
func TestMountsBehindALink(t *testing.T) {
	root := t.TempDir()
	data, dir := filepath.Join(root, "data"), filepath.Join(root, "kubelet")
	point := filepath.Join(data, "pods", "volume")
	must.NoError(t, os.MkdirAll(point, 0o755))
	must.NoError(t, os.Symlink(data, dir))
	for _, undo := range []func(string) error{UnmountInside, UnmountBelow} {
		must.NoError(t, unix.Mount("none", point, "tmpfs", 0, ""))
		points, err := host.MountsBelow(dir)
		must.NoError(t, err)
		must.NoError(t, undo(dir))
		left, err := host.MountsBelow(data)
		must.NoError(t, errors.Join(err, UnmountBelow(data)))
		if len(points) != 1 || len(left) > 0 {
			t.Errorf("found %q below the link, %q are left", points, left)
		}
	}
}

// TestShareMountBehindALink: mounts below the link are those below its target.
func TestShareMountBehindALink(t *testing.T) {
	root := t.TempDir()
	data, dir := filepath.Join(root, "data"), filepath.Join(root, "kubelet")
	must.NoError(t, os.Mkdir(data, 0o755))
	must.NoError(t, os.Symlink(data, dir))
	must.NoError(t, ShareMount(dir))
	shared, sharedErr := SharedMount(dir)
	itself, err := MountedOnItself(dir)
	must.NoError(t, errors.Join(err, sharedErr, UnmountBelow(data)))
	if !shared || !itself {
		t.Errorf("shared %t, mounted on itself %t", shared, itself)
	}
}
