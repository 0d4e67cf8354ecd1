package local

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestLostSettingsAreNotInForce: the defaults in their place are for turndown only.
func TestLostSettingsAreNotInForce(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	must.NoError(t, files.Put([]host.File{
		{Path: RoleFile, Data: []byte(ControlPlane + "\n")}, {Path: config.SavedPath, Data: []byte("apiServerPort: [")},
	}))
	_, err := InForce(files)
	if problems := step.Problems(err); len(problems) != 1 || problems[0].Name != "settings-lost" {
		t.Errorf("got %v", err)
	}
}
