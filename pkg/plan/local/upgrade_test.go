package local

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const oldRelease, newRelease = "v1.36.3", "v1.37.2"

// upgrading returns a host with the settings of the old release and an unfinished upgrade.
func upgrading(t *testing.T, role string, phase upgrade.Phase) host.Files {
	t.Helper()
	files := host.Files{Root: t.TempDir()}
	cfg := config.Default()
	cfg.HostName, cfg.IPAddress, cfg.KubernetesVersion = "one", netip.MustParseAddr("10.0.0.1"), oldRelease
	data, err := file.Marshal(cfg)
	must.NoError(t, err)
	must.NoError(t, files.Put([]host.File{
		{Path: RoleFile, Data: []byte(role + "\n")}, {Path: config.SavedPath, Data: data},
	}))
	from, err := image.For(oldRelease, image.Versions{})
	must.NoError(t, err)
	to, err := image.For(newRelease, image.Versions{CoreDNS: "1.14.5"})
	must.NoError(t, err)
	must.NoError(t, upgrade.File.Write(files, upgrade.Record{From: from, To: to, Phase: phase, Since: time.Now()}))
	return files
}

func TestOnlyTheControlPlaneOfAnUnfinishedUpgradeIsNew(t *testing.T) {
	for phase, emulated := range map[upgrade.Phase]string{upgrade.Emulating: "1.36", upgrade.Finishing: ""} {
		h, err := InForce(upgrading(t, ControlPlane, phase))
		must.NoError(t, err)
		if got := EmulatedVersion(h); got != emulated {
			t.Errorf("%s: emulates %q, want %q", phase, got, emulated)
		}
		if h.Versions.Kubernetes != oldRelease || ControlPlaneVersions(h).Kubernetes != newRelease {
			t.Errorf("%s: got %s and %s", phase, h.Versions.Kubernetes, ControlPlaneVersions(h).Kubernetes)
		}
		kubelet, server := h.Program("kubelet"), ControlPlaneProgram(h)("kube-apiserver")
		if !strings.Contains(kubelet, oldRelease) || !strings.Contains(server, newRelease) {
			t.Errorf("%s: the kubelet is %s, the API server %s", phase, kubelet, server)
		}
	}
}

// TestARunOfTheNewVersionEndsTheUpgrade: a control plane must have ended the emulation before.
func TestARunOfTheNewVersionEndsTheUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		role    string
		phase   upgrade.Phase
		problem string
	}{
		"a control plane that emulates": {ControlPlane, upgrade.Emulating, "newer minor version"},
		"a control plane":               {ControlPlane, upgrade.Finishing, ""},
		"a worker":                      {Worker, upgrade.Emulating, ""},
	} {
		files := upgrading(t, c.role, c.phase)
		saved, err := ReadSaved(files)
		must.NoError(t, err)
		next := saved.Config
		next.KubernetesVersion = newRelease
		h, err := open(files, saved, next, nil)
		must.NoError(t, err)
		if h.Upgrade.Begun() || h.Versions.CoreDNS != "1.14.5" {
			t.Errorf("%s: got %+v, with CoreDNS %s", name, h.Upgrade, h.Versions.CoreDNS)
		}
		isSkewed(t, name, SkewProblem(h, c.role), c.problem)
	}
}

func TestADamagedRecordOfAnUpgradeIsAProblem(t *testing.T) {
	files := upgrading(t, ControlPlane, upgrade.Finishing)
	must.NoError(t, files.Write(upgrade.File.Path, []byte("{"), 0o600))
	h, err := InForce(files)
	must.NoError(t, err)
	if found := step.Problems(SkewProblem(h, ControlPlane)); len(found) != 1 || found[0].Name != "upgrade-lost" {
		t.Errorf("got %v", found)
	}
}
