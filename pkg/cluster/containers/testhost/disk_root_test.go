//go:build root

package testhost

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestConstantFiles: a container was started from snapshot 3, and may change its files in place.
func TestConstantFiles(t *testing.T) {
	const snapshots = "containerd/io.containerd.snapshotter.v1.overlayfs/snapshots"
	disk := t.TempDir()
	large := make([]byte, 2<<20)
	for name, content := range map[string][]byte{
		"host/bin/kube-bootstrap":                 nil,
		"kube-bootstrap/bin/kube-bootstrap":       nil,
		"docker-bootstrap/overlay2/ab/diff/etcd":  large,
		"docker-bootstrap/overlay2/ab/link":       large,
		snapshots + "/1/fs/usr/bin/large":         large,
		snapshots + "/1/fs/etc/crontab":           nil,
		snapshots + "/3/fs/data":                  large,
		"kubelet/snapshots/1/fs/volume":           large,
		"kube-bootstrap/etcd/member/wal/0000.wal": large,
	} {
		must.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(disk, name)), 0o755))
		must.NoError(t, os.WriteFile(filepath.Join(disk, name), content, 0o600))
	}
	upper := filepath.Join(disk, snapshots, "3")
	must.NoError(t, os.Mkdir(upper+"/work", 0o755))
	merged := t.TempDir()
	options := "lowerdir=" + filepath.Join(disk, snapshots, "1/fs") + ",upperdir=" + upper +
		"/fs,workdir=" + upper + "/work"
	must.NoError(t, syscall.Mount("overlay", merged, "overlay", 0, options))
	must.NoError(t, syscall.Unmount(merged, 0))

	list := exec.CommandContext(t.Context(), "/bin/sh", "-c", constantFiles)
	list.Dir = disk
	out, err := list.Output()
	must.NoError(t, err)
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(got)
	want := []string{
		snapshots + "/1/fs/usr/bin/large", "docker-bootstrap/overlay2/ab/diff/etcd", "host/bin/kube-bootstrap",
		"kube-bootstrap/bin/kube-bootstrap",
	}
	if !slices.Equal(got, want) {
		t.Errorf("constant files %q, want %q", got, want)
	}
}
