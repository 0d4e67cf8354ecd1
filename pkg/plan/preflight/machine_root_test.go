//go:build root

package preflight

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestRoomOnTheDisks(t *testing.T) {
	for options, problem := range map[string]string{
		"size=64m":              "",
		"size=1m":               "disk-space",
		"size=64m,nr_inodes=99": "disk-inodes",
	} {
		root := t.TempDir()
		must.NoError(t, unix.Mount("tmpfs", root, "tmpfs", 0, options))
		t.Cleanup(func() { _ = unix.Unmount(root, 0) })
		_, err := Room(host.Files{Root: root}).Check(t.Context())
		if (err == nil) != (problem == "") || err != nil && step.Problems(err)[0].Name != problem {
			t.Errorf("%s: %v, want %q", options, err, problem)
		}
	}
}
