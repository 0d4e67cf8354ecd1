//go:build root

package kubelet

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestVolumesThatAreStillMountedAreKept: a failed unmount may leave a volume of a pod
// below the kubelet's directory, whose data must not be removed with it.
func TestVolumesThatAreStillMountedAreKept(t *testing.T) {
	alone(t)
	k := fresh(t, false)
	t.Cleanup(func() { _ = filesystem.UnmountBelow(k.Files.Root) })
	must.NoError(t, k.Configure().Apply(t.Context()))
	const data = Dir + "/pods/1/volumes/data"
	put(t, k.Files, data, "of the user")
	put(t, k.Files, sharedFile+"/x", "") // a file that unmount cannot remove
	if err := k.Configure().Undo(t.Context()); err == nil {
		t.Error("the failure of the unmount is not reported")
	}
	if !k.Files.Exists(data) {
		t.Error("the data of a volume was removed")
	}
	must.NoError(t, k.Files.RemoveAll(sharedFile))
	must.NoError(t, k.Configure().Undo(t.Context()))
	if k.Files.Exists(data) {
		t.Error("the next turndown leaves the directory of the kubelet")
	}
}
