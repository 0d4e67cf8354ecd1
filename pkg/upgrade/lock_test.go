package upgrade

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func leaseOf(holder, version string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	lease.ResourceVersion = version
	if holder != "" {
		lease.Spec.HolderIdentity = &holder
	}
	return lease
}

// TestOnlyADeadHolderLosesTheLock: a holder that renews the lock between two looks is alive.
func TestOnlyADeadHolderLosesTheLock(t *testing.T) {
	const own, other = "root@a/1", "root@b/2"
	for name, c := range map[string]struct {
		nested  bool
		looks   []*coordinationv1.Lease // the last one is repeated
		free    int                     // number of the look that takes the lock; 0: none does
		problem string
	}{
		"nobody":             {false, []*coordinationv1.Lease{leaseOf("", "1")}, 1, ""},
		"this run":           {false, []*coordinationv1.Lease{leaseOf(own, "1")}, 1, ""},
		"alive":              {false, []*coordinationv1.Lease{leaseOf(other, "1"), leaseOf(other, "2")}, 0, "upgrade-locked"},
		"given back":         {false, []*coordinationv1.Lease{leaseOf(other, "1"), leaseOf("", "2")}, 2, ""},
		"dead":               {false, []*coordinationv1.Lease{leaseOf(other, "1")}, deadLooks + 1, ""},
		"of the parent":      {true, []*coordinationv1.Lease{leaseOf(other, "1"), leaseOf(own, "2")}, 2, ""},
		"not of the parent":  {true, []*coordinationv1.Lease{leaseOf(other, "1")}, 0, "upgrade-locked"},
		"lost by the parent": {true, []*coordinationv1.Lease{leaseOf("", "1")}, 0, "upgrade-locked"},
		"taken by this name": {false, []*coordinationv1.Lease{leaseOf("root@a/2", "1")}, deadLooks + 1, ""},
	} {
		l, seen := &Lock{Holder: own, Nested: c.nested}, looks{}
		at, err := 0, error(nil)
		for n := 1; n <= 3*deadLooks && at == 0 && err == nil; n++ {
			var free bool
			if free, err = l.free(c.looks[min(n, len(c.looks))-1], &seen); free {
				at = n
			}
		}
		if at != c.free {
			t.Errorf("%s: taken at look %d, want %d", name, at, c.free)
		}
		expect(t, name, err, c.problem, "")
	}
}

func TestTheStatusNamesTheHolder(t *testing.T) {
	lease := leaseOf("root@a/1", "1")
	since := metav1.NewMicroTime(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	lease.Spec.AcquireTime, lease.Annotations = &since, map[string]string{stepKey: "upgrade apply on a"}
	held := holdingOf(lease)
	if held.Holder != "root@a" || held.Step != "upgrade apply on a" || !held.Since.Equal(since.Time) {
		t.Errorf("got %+v", held)
	}
}

// TestTheObjectsOfTheLockAreComplete: workers may change the Lease of the lock and no other one.
func TestTheObjectsOfTheLockAreComplete(t *testing.T) {
	objects, err := kube.Objects(lockObjects)
	must.NoError(t, err)
	for _, o := range objects {
		if o.GetName() != lockName || o.GetNamespace() != metav1.NamespaceSystem {
			t.Errorf("%s has the name %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		}
	}
	if len(objects) != 3 {
		t.Errorf("got %d objects", len(objects))
	}
}
