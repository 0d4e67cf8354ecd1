package catalog

import (
	"fmt"
	"slices"
)

// CheckKubeletField says why the kubelet of a release does not have a field of
// the KubeletConfiguration. It would only log that it ignores it. A release
// that is none is told of elsewhere.
func CheckKubeletField(release, field string) error {
	_, m, err := Kubernetes(release)
	if err != nil {
		return nil
	}
	for _, other := range minors {
		switch {
		case other.Number > m.Number && slices.Contains(other.KubeletAdded, field):
			return fmt.Errorf("%s needs Kubernetes %s or newer, and the version is %s", field, other, release)
		case other.Number <= m.Number && slices.Contains(other.KubeletRemoved, field):
			return fmt.Errorf("%s is gone since Kubernetes %s, and the version is %s", field, other, release)
		}
	}
	return nil
}
