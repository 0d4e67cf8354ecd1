package catalog

import (
	"fmt"
	"slices"
)

// CheckKubeletField returns an error if the kubelet of a release does not know
// a field of the KubeletConfiguration: the kubelet itself would only log that
// it ignores the field. An invalid release is not an error here, because
// another check reports it.
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
			return fmt.Errorf("%s was removed in Kubernetes %s, and the version is %s", field, other, release)
		}
	}
	return nil
}
