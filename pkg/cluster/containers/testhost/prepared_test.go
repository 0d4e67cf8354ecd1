package testhost

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
)

// TestNoPreparedDiskWithoutRoom: it would take the space that hosts need.
func TestNoPreparedDiskWithoutRoom(t *testing.T) {
	for _, c := range []struct {
		key  string
		free int64
	}{{"a", sparePrepared - 1}, {"", sparePrepared}} {
		disk, err := (PreparedDisk{Key: c.key}).begin(t.Context(), containers.Cluster{}, c.free)
		if err != nil || disk != "" {
			t.Errorf("key %q, %d bytes free: disk %q, %v", c.key, c.free, disk, err)
		}
	}
}
