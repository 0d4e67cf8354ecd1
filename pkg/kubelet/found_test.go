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

// TestTablesOfIptables: only tables that iptables creates are removed, and only
// their chains.
func TestTablesOfIptables(t *testing.T) {
	for name, want := range map[string]bool{
		"ip filter": true, "ip6 nat": true, "ip filter INPUT": true, "ip6 raw PREROUTING": true,
		"inet filter": false, "inet filter input": false, "ip kube-proxy": false, "ip kube-proxy filter": false, "ip": false, "": false,
	} {
		if ofIptables(name) != want {
			t.Errorf("%q: got %t", name, !want)
		}
	}
}
