package upkeep

import (
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func upkeepOf(t *testing.T, role string) agent.Groups {
	t.Helper()
	cfg := config.Default()
	cfg.HostName, cfg.IPAddress, cfg.MasterIP, cfg.Join = "one", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.9"), role == local.Worker
	h := &local.Host{Config: cfg, Files: host.Files{Root: t.TempDir()}, Saved: local.Saved{Role: role, Config: cfg}}
	must.NoError(t, h.Files.Put([]host.File{local.CompleteMark}))
	return Reconcilers(h, &outages{})
}

// TestEachDutyIsFoundByItsName: the agent records the pauses between repairs by the name of a
// step, and looks at a step only after its events.
func TestEachDutyIsFoundByItsName(t *testing.T) {
	for _, role := range []string{local.ControlPlane, local.Worker} {
		for name, reconcilers := range upkeepOf(t, role) {
			seen := map[string]bool{}
			for _, d := range reconcilers {
				switch {
				case d.On == 0:
					t.Errorf("%s, %s: no event leads to %q", role, name, d.Step.Name)
				case seen[d.Step.Name]:
					t.Errorf("%s, %s: two steps are named %q", role, name, d.Step.Name)
				case d.Step.Check == nil || d.Step.Limit == 0:
					t.Errorf("%s, %s: %q has no check or no limit", role, name, d.Step.Name)
				}
				seen[d.Step.Name] = true
			}
		}
	}
}

// TestOnlyAControlPlaneHasEtcd: the agent of a worker repairs neither etcd nor what control
// planes share.
func TestOnlyAControlPlaneHasEtcd(t *testing.T) {
	for role, want := range map[string]bool{local.ControlPlane: true, local.Worker: false} {
		groups, has := upkeepOf(t, role), map[string]bool{}
		for _, reconcilers := range groups {
			for _, d := range reconcilers {
				has[d.Step.Name] = true
			}
		}
		for _, name := range []string{"start etcd", "list this control plane"} {
			if has[name] != want {
				t.Errorf("%s: %q is a reconciler: %t", role, name, has[name])
			}
		}
		if len(groups["cluster"]) > 0 != want {
			t.Errorf("%s: reconcilers for the cluster: %d", role, len(groups["cluster"]))
		}
		if !has["start flanneld"] || !has["start the kubelet"] {
			t.Errorf("%s: flanneld or the kubelet has no reconciler", role)
		}
	}
}

// TestFlanneldFollowsEtcd: each reconciler of the overlay may need the one before.
func TestFlanneldFollowsEtcd(t *testing.T) {
	var order []string
	for _, d := range upkeepOf(t, local.ControlPlane)["overlay"] {
		order = append(order, d.Step.Name)
	}
	if len(order) < 2 || order[0] != "start etcd" || order[1] != "start flanneld" {
		t.Errorf("got %q", order)
	}
}
