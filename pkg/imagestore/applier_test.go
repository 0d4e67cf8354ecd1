package imagestore

import (
	"testing"

	"github.com/containerd/containerd/v2/core/mount"
)

func TestDirectoryOfASnapshot(t *testing.T) {
	bind := mount.Mount{Type: "bind", Source: "/snapshots/1/fs", Options: []string{"rw", "rbind"}}
	overlay := mount.Mount{
		Type: "overlay", Source: "overlay", Options: []string{
			"workdir=/snapshots/2/work", "upperdir=/snapshots/2/fs", "lowerdir=/snapshots/1/fs",
		},
	}
	for _, c := range []struct {
		name    string
		mounts  []mount.Mount
		dir     string
		options int
	}{
		{"nothing below", []mount.Mount{bind}, "/snapshots/1/fs", 0},
		{"over another", []mount.Mount{overlay}, "/snapshots/2/fs", 2},
		{"a file system of its own", []mount.Mount{{Type: "ext4", Source: "/dev/mapper/1"}}, "", 0},
		{"several", []mount.Mount{bind, overlay}, "", 0},
		{"an overlay that is only read", []mount.Mount{{Type: "overlay", Options: []string{"lowerdir=/a:/b"}}}, "", 2},
	} {
		dir, options := directory(c.mounts)
		if dir != c.dir || len(options) != c.options {
			t.Errorf("%s: %q with %d options", c.name, dir, len(options))
		}
	}
}
