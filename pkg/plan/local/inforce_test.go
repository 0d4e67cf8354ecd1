package local

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
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

// TestCurrentSettings are read again after a run has saved others, and not before.
func TestCurrentSettings(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	save := func(port int) {
		t.Helper()
		cfg := config.Default()
		cfg.HostName, cfg.IPAddress, cfg.APIServerPort = "one", netip.MustParseAddr("10.0.0.1"), port
		data, err := file.Marshal(cfg)
		must.NoError(t, err)
		must.NoError(t, files.Put([]host.File{
			{Path: RoleFile, Data: []byte(ControlPlane + "\n")}, {Path: config.SavedPath, Data: data},
		}))
	}
	current := Current{Files: files}
	if _, err := current.Host(); err != nil {
		t.Error("a host without settings:", err)
	}
	for _, port := range []int{6443, 7443} {
		save(port)
		first, err := current.Host()
		must.NoError(t, err)
		kept := current.host
		second, err := current.Host()
		must.NoError(t, err)
		if first.Config.APIServerPort != port || second.Config.APIServerPort != port {
			t.Errorf("got port %d, then %d, want %d", first.Config.APIServerPort, second.Config.APIServerPort, port)
		}
		if current.host != kept {
			t.Error("the settings were read again without a change")
		}
		if first == second || first.Join == second.Join || first.Loads == second.Loads {
			t.Error("two callers share what a run keeps")
		}
	}
	must.NoError(t, files.Write(config.SavedPath, []byte("apiServerPort: ["), 0o600))
	if _, err := current.Host(); len(step.Problems(err)) != 1 {
		t.Error("damaged settings:", err)
	}
}
