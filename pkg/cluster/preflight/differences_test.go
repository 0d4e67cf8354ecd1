package preflight

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// TestAnotherVersionPointsToUpgrade: `cluster up` changes no version of a cluster.
func TestAnotherVersionPointsToUpgrade(t *testing.T) {
	for field, points := range map[string]bool{"kubernetesVersion": true, "flannelBackend": false} {
		err := Differs("k", []config.Difference{{Setting: config.Setting{Field: field}}})
		if err == nil || strings.Contains(err.Error(), "`kube-bootstrap upgrade plan`") != points {
			t.Errorf("%s: %v", field, err)
		}
	}
}
