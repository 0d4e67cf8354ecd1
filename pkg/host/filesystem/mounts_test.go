package filesystem

import (
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

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
