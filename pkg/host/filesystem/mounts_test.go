package filesystem

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func parse(t *testing.T, table string) []*mountinfo.Info {
	t.Helper()
	all, err := mountinfo.GetMountsFromReader(strings.NewReader(table), nil)
	must.NoError(t, err)
	return all
}

func TestSharedIn(t *testing.T) {
	const table = `21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
22 21 8:2 / /var rw - ext4 /dev/sda2 rw
23 22 8:3 / /var/lib/a\040b rw master:4 - ext4 /dev/sda3 rw
24 22 8:4 / /var/lib/c rw - ext4 /dev/sda4 rw
25 24 8:4 / /var/lib/c rw shared:7 - ext4 /dev/sda4 rw
`
	for dir, want := range map[string]bool{
		"/etc": true, "/variable": true, "/var": false, "/var/lib/kubelet": false,
		"/var/lib/a b/x": false, "/var/lib/c": true, "/var/lib/c/d": true,
	} {
		if got := shared(around(parse(t, table), dir)); got != want {
			t.Errorf("%s: shared %t, want %t", dir, got, want)
		}
	}
}

func TestMountedOnItself(t *testing.T) {
	const table = `21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
22 21 8:2 /volumes/x/_data /var/lib rw - ext4 /dev/sda2 rw
23 22 8:2 /volumes/x/_data/kubelet /var/lib/kubelet rw shared:4 - ext4 /dev/sda2 rw
24 22 8:2 /volumes/y /var/lib/other rw - ext4 /dev/sda2 rw
25 22 8:4 / /var/lib/own rw - ext4 /dev/sda4 rw
26 21 8:1 /srv /srv rw - ext4 /dev/sda1 rw
`
	for dir, want := range map[string]bool{
		"/var/lib/kubelet": true, "/srv": true, "/var/lib/other": false, "/var/lib/own": false,
		"/var/lib/none": false, "/etc": false,
	} {
		if got := mountedOnItself(parse(t, table), dir); got != want {
			t.Errorf("%s: %t, want %t", dir, got, want)
		}
	}
}

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
