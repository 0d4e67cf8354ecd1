package file

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheSettingsOfAHostAreNobodysWish(t *testing.T) {
	if at := (decoder{path: config.SavedPath}).origin(word("")); at.Source != config.FromHost {
		t.Errorf("what a host was set up with is from %s", at)
	}
}

// TestAnEmptyListIsAValue: `addons: []` is a cluster without addons, as `--addons ""` is.
func TestAnEmptyListIsAValue(t *testing.T) {
	const header = "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\n"
	for text, given := range map[string]bool{
		"addons: []": true, "addons:": false, "addons: null": false, "featureGates: {}": true, "nodeLabels: {}": true,
		"auditPolicy: {}": true,
	} {
		path := must.Write(t, filepath.Join(t.TempDir(), "cluster.yaml"), header+text+"\n")
		cfg, origins := config.Default(), config.Origins{}
		cfg.Addons = []string{"a default"}
		must.NoError(t, Read(path, &cfg, origins))
		if (len(origins) > 0) != given || text == "addons: []" && len(cfg.Addons) > 0 {
			t.Errorf("%s: addons %q, from %v", text, cfg.Addons, origins)
		}
	}
}

// TestAFileWithoutAnEndIsRefused: it would fill the memory.
func TestAFileWithoutAnEndIsRefused(t *testing.T) {
	cfg := config.Default()
	if err := Read("/dev/zero", &cfg, config.Origins{}); err == nil ||
		!strings.Contains(err.Error(), "/dev/zero is larger than 4 MiB") {
		t.Errorf("got %v", err)
	}
}
