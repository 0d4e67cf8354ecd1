package plan

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// orderOfUndo lists pairs of steps: the first one is undone before the second one.
var orderOfUndo = [][2]step.ID{
	{kubelet.StartID, containerd.PodsID},
	{maindocker.BootUnitID, containerd.PodsID},
	{kubelet.StartID, kubelet.JoinID},
	{kubelet.JoinID, flannel.StartID},
	{kubelet.JoinID, kubelet.ConfigureID},
	{kubelet.JoinID, agent.StartID},
	{controlplane.ControllersID, kubelet.StartID},
	{controlplane.ControllersInNewClusterID, kubelet.StartID},
	{host.CreatedDirsID, kubelet.StartID},
	{host.CreatedDirsID, maindocker.OverlayID},
	{kubelet.StartID, maindocker.Docker0ID},
	{containerd.PodsID, "host-filter"},
	{"load-flannel-bootstrap-docker", bootstrapdocker.StartID},
	{maindocker.OverlayID, maindocker.Docker0ID},
	{maindocker.BootUnitID, maindocker.Docker0ID},
	{maindocker.Docker0ID, flannel.StartID},
	{containerd.PodsID, kubelet.ConfigureID},
	{maindocker.Docker0ID, kubelet.ConfigureID},
	{flannel.StartID, kubelet.ConfigureID}, // which removes the tables of iptables that are empty
	{containerd.LeaveCNIID, kubelet.ConfigureID},
	{containerd.PodsID, containerd.LeaveCNIID},
	{maindocker.Docker0ID, "service-route"},
	{containerd.PodsID, "start-etcd"},
	{containerd.PodsID, "cni-plugins"},
	{flannel.StartID, "start-etcd"},
	{flannel.StartID, agent.StartID},
	{agent.StartID, bootstrapdocker.StartID},
	{kubelet.ConfigureID, "cri"},
	{bootstrapdocker.StartID, "remember-settings"},
}

// besides lists pairs of steps neither of whose Undo waits for the other one.
var besides = [][2]step.ID{
	{containerd.PodsID, maindocker.Docker0ID},
	{kubelet.JoinID, maindocker.Docker0ID},
	{kubelet.StartID, maindocker.OverlayID},
	{kubelet.StartID, maindocker.BootUnitID},
	{"cni-plugins", maindocker.Docker0ID},
	{"service-route", kubelet.ConfigureID},
}

// TestOrderOfUndo undoes the plans without a host: each ends, and what a step
// needs to be undone is undone after it. The graph must state the same, because a step may be undone
// late by chance.
func TestOrderOfUndo(t *testing.T) {
	compared := map[[2]step.ID]bool{}
	for name, p := range plansOfAllHosts(t) {
		graph, err := step.NewGraph(p)
		must.NoError(t, err)
		order := undone(t, p)
		for _, pair := range orderOfUndo {
			first, second := slices.Index(order, pair[0]), slices.Index(order, pair[1])
			if first < 0 || second < 0 {
				continue // not in this plan
			}
			if compared[pair] = true; first > second || !graph.UndoneBefore(pair[0], pair[1]) {
				t.Errorf("%s: %s is undone after %s, or may be", name, pair[0], pair[1])
			}
		}
		for _, pair := range besides {
			if graph.UndoneBefore(pair[0], pair[1]) || graph.UndoneBefore(pair[1], pair[0]) {
				t.Errorf("%s: the Undo of %s and %s wait for one another", name, pair[0], pair[1])
			}
		}
		if order[len(order)-1] != "remember-settings" {
			t.Errorf("%s: %s is undone last", name, order[len(order)-1])
		}
	}
	for _, pair := range orderOfUndo {
		if !compared[pair] {
			t.Errorf("no plan has both %s and %s", pair[0], pair[1])
		}
	}
}

// plansOfAllHosts returns the plans of all roles with each kind of network, and with lost settings.
func plansOfAllHosts(t *testing.T) map[string]step.Plan {
	t.Helper()
	plans := map[string]step.Plan{}
	for _, plugin := range []string{extension.CNIBridge, extension.CNIFlannel, extension.CNINone, "calico"} {
		for name, c := range map[string]struct {
			plan       func(*local.Host) step.Plan
			join, lost bool
		}{
			"master": {ControlPlane, false, false}, "joining master": {ControlPlane, true, false}, "master without settings": {ControlPlane, false, true},
			"worker": {Worker, false, false}, "worker without settings": {Worker, false, true},
		} {
			cfg := config.Default()
			cfg.HostName, cfg.CNIPlugin, cfg.Join = "one", plugin, c.join
			cfg.IPAddress, cfg.MasterIP = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
			h := installedWith(t, host.Files{Root: t.TempDir()}, cfg)
			if c.lost {
				h.Saved.Lost = errors.New("no settings")
			}
			plans[name+" "+plugin] = c.plan(h)
		}
	}
	return plans
}

// durations are those of the slow steps.
var durations = map[step.ID]time.Duration{maindocker.Docker0ID: 50 * time.Millisecond}

// undone returns the IDs of the steps as they are undone. It gives each
// the time in which a step that does not wait would overtake it.
func undone(t *testing.T, p step.Plan) (order []step.ID) {
	t.Helper()
	var mu sync.Mutex
	for _, stage := range p {
		for i := range stage {
			if stage[i].Undo == nil {
				continue
			}
			stage[i].Undo = func(context.Context) error {
				time.Sleep(durations[stage[i].ID] + 5*time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, stage[i].ID)
				return nil
			}
		}
	}
	must.NoError(t, (&step.Runner{}).Undo(t.Context(), p))
	return order
}
