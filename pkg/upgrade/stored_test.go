package upgrade

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRemovedKindsAreThoseBetweenTwoReleases: CronJob of batch/v1beta1 ended with 1.25.
func TestRemovedKindsAreThoseBetweenTwoReleases(t *testing.T) {
	ended := schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}
	for _, c := range []struct {
		from, to string
		removed  bool
	}{
		{"v1.24.0", "v1.25.0", true}, {"v1.25.0", "v1.26.0", false}, {"v1.23.0", "v1.24.0", false},
	} {
		if got := slices.Contains(removedKinds(c.from, c.to), ended); got != c.removed {
			t.Errorf("%s to %s: got %v", c.from, c.to, got)
		}
	}
}

func TestManagedFieldsNameTheVersionOfTheAPI(t *testing.T) {
	object := &metav1.PartialObjectMetadata{}
	object.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "new", APIVersion: "batch/v1"}, {Manager: "old", APIVersion: "batch/v1beta1"},
	}
	for version, want := range map[string]string{"batch/v1beta1": "old", "batch/v1": "new", "batch/v2": ""} {
		if got := managerOf(object, version); got != want {
			t.Errorf("%s: got %q", version, got)
		}
	}
}
