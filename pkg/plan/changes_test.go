package plan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// installedWith returns an installed host with settings for its next run.
func installedWith(t *testing.T, files host.Files, cfg config.Config) *local.Host {
	t.Helper()
	h := &local.Host{Files: files, Units: initsystem.Open(), Config: cfg, Join: &join.Joining{}}
	var err error
	if h.Saved, err = local.ReadSaved(files); err != nil {
		t.Fatal(err)
	}
	must.NoError(t, h.UseCatalogue())
	return h
}

// run does the first and the last step of a run, and between them returns an
// error or nothing.
func run(t *testing.T, h *local.Host, between error) error {
	t.Helper()
	some := step.Step{ID: "some-step", Name: "some step", Check: func(context.Context) (step.Diff, error) { return nil, between }}
	return (&step.Runner{}).Do(t.Context(), step.Plan{{remember(h, local.ControlPlane)}, {some}, {accept(h, local.ControlPlane)}})
}

func TestARunThatFailsLeavesTheSettingsInForce(t *testing.T) {
	files, first := host.Files{Root: t.TempDir()}, config.Default()
	boom := errors.New("boom")
	if err := run(t, installedWith(t, files, first), boom); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if saved, err := local.ReadSaved(files); err != nil || saved.Role != local.ControlPlane {
		t.Errorf("a first run that failed left %q, %v: turndown could not take it back", saved.Role, err)
	}
	second := first
	second.KubernetesVersion, second.NodeLabels, second.Addons = "v1.35.4", []config.Label{{Key: "a", Value: "b"}}, []string{"dashboard"}
	if err := run(t, installedWith(t, files, second), boom); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	saved, err := local.ReadSaved(files)
	if err != nil || saved.Config.KubernetesVersion != first.KubernetesVersion || len(saved.Config.NodeLabels) > 0 || len(saved.Config.Addons) > 0 {
		t.Errorf("the settings of a run that failed are in force: %+v, %v", saved.Config, err)
	}
	if v := installedWith(t, files, first).KnownVersions(); v.Kubernetes != first.KubernetesVersion {
		t.Errorf("the versions of a run that failed are in force: %+v", v)
	}
	must.NoError(t, run(t, installedWith(t, files, second), nil))
	if saved, err = local.ReadSaved(files); err != nil || saved.Config.KubernetesVersion != "v1.35.4" || len(saved.Config.NodeLabels) != 1 {
		t.Errorf("the settings of a run that succeeded are not in force: %+v, %v", saved.Config, err)
	}
}

func TestARunWithOtherVersionsIsToBeFinished(t *testing.T) {
	files, first := host.Files{Root: t.TempDir()}, config.Default()
	must.NoError(t, run(t, installedWith(t, files, first), nil))
	other, patch, etcd := first, first, first
	other.NodeLabels, patch.KubernetesVersion, etcd.EtcdVersion = []config.Label{{Key: "a", Value: "b"}}, "v1.37.9", "v3.7.1"
	for cfg, want := range map[*config.Config]bool{&first: false, &other: false, &patch: true, &etcd: true} {
		if got := installedWith(t, files, *cfg).Upgrading(); got != want {
			t.Errorf("%s, etcd %s: %t", cfg.KubernetesVersion, cfg.EtcdVersion, got)
		}
	}
}

func TestThePlansKeepTheSettingsOnceAllIsUpToDate(t *testing.T) {
	h := installedWith(t, host.Files{Root: t.TempDir()}, config.Default())
	for name, plan := range map[string]step.Plan{"master": ControlPlane(h), "worker": Worker(h), "load": Load(h)} {
		kept := false
		for _, s := range plan.Steps() {
			if kept && !strings.HasPrefix(string(s.ID), "drop-images-") {
				t.Errorf("%s: %q comes after the settings are kept", name, s.Name)
			}
			kept = kept || s.ID == accept(h, local.ControlPlane).ID
		}
		if !kept {
			t.Errorf("%s does not keep its settings", name)
		}
	}
}
