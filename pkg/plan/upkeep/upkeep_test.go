package upkeep

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestManifestsOfAnInterruptedExchangeAreRestored: the agent was killed after it had removed
// them. A control plane that joins has none yet, and gets them from its run.
func TestManifestsOfAnInterruptedExchangeAreRestored(t *testing.T) {
	const manager, scheduler = "kube-controller-manager", "kube-scheduler"
	for name, c := range map[string]struct {
		pods                     []string
		complete, renewing, late bool
	}{
		"both there":        {[]string{manager, scheduler}, true, false, false},
		"both removed":      {nil, true, false, true},
		"one written again": {[]string{manager}, true, false, true},
		"joining":           {nil, false, false, false},
		"being renewed":     {[]string{scheduler}, true, true, false},
	} {
		h := &local.Host{Config: config.Default(), Files: host.Files{Root: t.TempDir()}, Saved: local.Saved{Role: local.ControlPlane}}
		for _, pod := range c.pods {
			must.NoError(t, h.Files.Write(controlplane.ManifestDir+"/"+pod+".yaml", []byte("--leader-elect=false"), 0o600))
		}
		if c.complete {
			must.NoError(t, h.Files.Put([]host.File{local.CompleteMark}))
		}
		if c.renewing {
			must.NoError(t, h.Files.Write(controlplane.RenewingFile, nil, 0o600))
		}
		p := parts.InForce(h)
		_, err := step.NewGraph(clusterPlan(p.Etcd.Member, p.ControlPlane, p.Addons))
		must.NoError(t, err)
		late := false
		for _, s := range shared(p.Etcd.Member, p.ControlPlane, p.Addons) {
			late = late || s.ID == controlplane.ControllersID
		}
		if late != c.late {
			t.Errorf("%s: written: %t", name, late)
		}
	}
}
