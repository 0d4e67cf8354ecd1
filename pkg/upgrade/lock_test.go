package upgrade

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func held(by, version string) *corev1.ConfigMap {
	state := &corev1.ConfigMap{Data: map[string]string{holderKey: by}}
	state.ResourceVersion = version
	return state
}

// TestOnlyADeadHolderLosesTheLock: a holder that renews the lock between two looks is alive.
func TestOnlyADeadHolderLosesTheLock(t *testing.T) {
	const own, other = "root@a/1", "root@b/2"
	for name, c := range map[string]struct {
		nested  bool
		looks   []*corev1.ConfigMap // the last one is repeated
		free    int                 // number of the look that takes the lock; 0: none does
		problem string
	}{
		"nobody":             {false, []*corev1.ConfigMap{held("", "1")}, 1, ""},
		"this run":           {false, []*corev1.ConfigMap{held(own, "1")}, 1, ""},
		"alive":              {false, []*corev1.ConfigMap{held(other, "1"), held(other, "2")}, 0, "upgrade-locked"},
		"given back":         {false, []*corev1.ConfigMap{held(other, "1"), held("", "2")}, 2, ""},
		"dead":               {false, []*corev1.ConfigMap{held(other, "1")}, deadLooks + 1, ""},
		"of the parent":      {true, []*corev1.ConfigMap{held(other, "1"), held(own, "2")}, 2, ""},
		"not of the parent":  {true, []*corev1.ConfigMap{held(other, "1")}, 0, "upgrade-locked"},
		"lost by the parent": {true, []*corev1.ConfigMap{held("", "1")}, 0, "upgrade-locked"},
		"taken by this name": {false, []*corev1.ConfigMap{held("root@a/2", "1")}, deadLooks + 1, ""},
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
	state := held("root@a/1", "1")
	state.Data[sinceKey], state.Data[stepKey] = "2026-11-29T12:00:00Z", "upgrade apply on a"
	is := holdingOf(state)
	if is.Holder != "root@a" || is.Step != "upgrade apply on a" || is.Since.Hour() != 12 {
		t.Errorf("got %+v", is)
	}
}

// TestTheObjectsOfTheLockAreComplete: workers may change the object of the lock and no other one.
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
