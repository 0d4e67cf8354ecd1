package plan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// installedWith returns an installed host with settings for its next run.
func installedWith(t *testing.T, files host.Files, cfg config.Config) *Host {
	t.Helper()
	h := &Host{Files: files, Units: host.OpenUnits(), Config: cfg}
	var err error
	if h.saved, err = ReadSaved(files); err != nil {
		t.Fatal(err)
	}
	if err := h.useCatalogue(); err != nil {
		t.Fatal(err)
	}
	return h
}

// run does the first and the last step of a run, and between them returns an
// error or nothing.
func (h *Host) run(t *testing.T, between error) error {
	t.Helper()
	some := step.Step{Name: "some step", Check: func(context.Context) (step.Diff, error) { return nil, between }}
	return (&step.Runner{}).Do(t.Context(), step.Plan{{h.remember(Master)}, {some}, {h.accept(Master)}})
}

func TestARunThatFailsLeavesTheSettingsInForce(t *testing.T) {
	files, first := host.Files{Root: t.TempDir()}, config.Default()
	boom := errors.New("boom")
	if err := installedWith(t, files, first).run(t, boom); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if saved, err := ReadSaved(files); err != nil || saved.Role != Master {
		t.Errorf("a first run that failed left %q, %v: turndown could not take it back", saved.Role, err)
	}
	second := first
	second.KubernetesVersion, second.NodeLabels, second.Addons = "v1.35.4", []string{"a=b"}, []string{"dashboard"}
	if err := installedWith(t, files, second).run(t, boom); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	saved, err := ReadSaved(files)
	if err != nil || saved.Config.KubernetesVersion != first.KubernetesVersion || len(saved.Config.NodeLabels) > 0 || len(saved.Config.Addons) > 0 {
		t.Errorf("the settings of a run that failed are in force: %+v, %v", saved.Config, err)
	}
	if v := installedWith(t, files, first).knownVersions(); v.Kubernetes != first.KubernetesVersion {
		t.Errorf("the versions of a run that failed are in force: %+v", v)
	}
	if err := installedWith(t, files, second).run(t, nil); err != nil {
		t.Fatal(err)
	}
	if saved, err = ReadSaved(files); err != nil || saved.Config.KubernetesVersion != "v1.35.4" || len(saved.Config.NodeLabels) != 1 {
		t.Errorf("the settings of a run that succeeded are not in force: %+v, %v", saved.Config, err)
	}
}

func TestARunWithOtherVersionsIsToBeFinished(t *testing.T) {
	files, first := host.Files{Root: t.TempDir()}, config.Default()
	if err := installedWith(t, files, first).run(t, nil); err != nil {
		t.Fatal(err)
	}
	other, patch, etcd := first, first, first
	other.NodeLabels, patch.KubernetesVersion, etcd.EtcdVersion = []string{"a=b"}, "v1.37.9", "v3.7.1"
	for cfg, want := range map[*config.Config]bool{&first: false, &other: false, &patch: true, &etcd: true} {
		if got := installedWith(t, files, *cfg).Upgrading(); got != want {
			t.Errorf("%s, etcd %s: %t", cfg.KubernetesVersion, cfg.EtcdVersion, got)
		}
	}
}

func TestThePlansKeepTheSettingsOnceAllIsInPlace(t *testing.T) {
	h := installedWith(t, host.Files{Root: t.TempDir()}, config.Default())
	for name, plan := range map[string]step.Plan{"master": h.Master(), "worker": h.Worker(), "load": h.Load()} {
		kept := false
		for _, s := range plan.Steps() {
			if kept && !strings.HasPrefix(s.Name, "remove replaced images ") {
				t.Errorf("%s: %q comes after the settings are kept", name, s.Name)
			}
			kept = kept || s.Name == h.accept(Master).Name
		}
		if !kept {
			t.Errorf("%s does not keep its settings", name)
		}
	}
}

// TestAVerificationKeyStays: only a run that gives another key, or an empty one,
// changes it, on a host with loaded images too.
func TestAVerificationKeyStays(t *testing.T) {
	for _, role := range []string{Master, Worker, Loaded} {
		saved := Saved{Role: role, Config: config.Default()}
		saved.Config.VerifyKey = "/etc/our.pub"
		for given, want := range map[string]string{"": "/etc/our.pub", "given": "", "other": "/etc/other.pub"} {
			asked, origins := config.Default(), config.Origins{"bundle": {Source: config.FromFile}}
			if given != "" {
				origins["verifyKey"] = config.Origin{Source: config.FromFlag}
			}
			if given == "other" {
				asked.VerifyKey = "/etc/other.pub"
			}
			if kept, _ := saved.Keep(asked, origins); kept.VerifyKey != want {
				t.Errorf("%s, %q: got %q, want %q", role, given, kept.VerifyKey, want)
			}
		}
	}
}

func TestImagesLoadedByHandHaveNoSignature(t *testing.T) {
	h := &Host{byHand: true}
	h.Config.VerifyKey = "/etc/our.pub"
	if problems := step.Problems(h.byHandProblem(t.Context())); len(problems) != 1 || problems[0].Name != "bundle" {
		t.Errorf("got %v", problems)
	}
}

func TestAChangeThatCannotBeIsRefusedByName(t *testing.T) {
	saved := Saved{Role: Master, Config: config.Default()}
	saved.Config.IPAddress = "10.0.0.1"
	asked := saved.Config
	asked.IPAddress, asked.FlannelBackend = "10.0.0.2", "host-gw"
	from := config.Origin{Source: config.FromFlag, Where: "--flag"}
	h := &Host{saved: saved, Config: asked}
	h.Config, h.refused = saved.Keep(asked, config.Origins{"ipAddress": from, "flannelBackend": from})
	h.Config.IgnorePreflight = []string{"settings", "ip-address", "flannel-backend"}
	_, err := h.look("settings", "", h.settingsProblem).Check(t.Context())
	problems := step.Problems(err)
	if len(problems) != 2 || problems[0].Name != "flannel-backend" || problems[1].Name != "ip-address" {
		t.Fatalf("problems are %v", problems)
	}
	for _, part := range []string{"flannelBackend: host-gw", "vxlan"} {
		if !strings.Contains(problems[0].Error(), part) {
			t.Errorf("%q does not name %q", problems[0], part)
		}
	}
	if h.Config.FlannelBackend != "vxlan" || h.Config.IPAddress != "10.0.0.1" {
		t.Errorf("the refused values are in the settings: %+v", h.Config)
	}
}

func TestAHostThatJoinsTakesTheClustersSettings(t *testing.T) {
	theirs := config.Default()
	theirs.ServiceNetwork, theirs.FlannelIPMasq = "10.97.0.0/16", false
	h := &Host{Config: config.Default(), given: config.Origins{"flannelIPMasq": {Source: config.FromFlag, Where: "--flannel-ipmasq"}}}
	h.follow(theirs)
	if h.Config.ServiceNetwork != "10.97.0.0/16" || h.Config.FlannelIPMasq {
		t.Errorf("settings are %+v", h.Config)
	}
	if len(h.refused) != 1 || h.refused[0].Field != "flannelIPMasq" {
		t.Errorf("refused are %+v", h.refused)
	}
}
