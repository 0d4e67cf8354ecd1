package plan

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// orderOfUndo lists pairs of steps: the first one is undone before the second one.
var orderOfUndo = [][2]string{
	{"start the kubelet", "run pods in containerd"},
	{"bring the network back at boot", "run pods in containerd"},
	{"start the kubelet", "join the cluster"},
	{"join the cluster", "start flanneld"},
	{"join the cluster", "configure the kubelet"},
	{"join the cluster", "start the agent"},
	{"write the static pods of the scheduler and the controller manager", "start the kubelet"},
	{"let the overlay into docker0", "move docker0 onto the flannel subnet"},
	{"bring the network back at boot", "move docker0 onto the flannel subnet"},
	{"move docker0 onto the flannel subnet", "start flanneld"},
	{"run pods in containerd", "configure the kubelet"},
	{"move docker0 onto the flannel subnet", "configure the kubelet"},
	{"start flanneld", "configure the kubelet"}, // which removes the tables of iptables that are empty
	{"leave the pod network to another plugin", "configure the kubelet"},
	{"run pods in containerd", "leave the pod network to another plugin"},
	{"move docker0 onto the flannel subnet", "route Services where there is no default route"},
	{"run pods in containerd", "start etcd"},
	{"run pods in containerd", "install the CNI plugins"},
	{"start flanneld", "start etcd"},
	{"start flanneld", "start the agent"},
	{"start the agent", "start the bootstrap Docker"},
	{"configure the kubelet", "turn on containerd's CRI"},
	{"start the bootstrap Docker", "remember the settings"},
}

// TestOrderOfUndo undoes the plans without a host: each ends, and what a step
// needs to be undone is undone after it.
func TestOrderOfUndo(t *testing.T) {
	compared := map[[2]string]bool{}
	for name, makePlan := range map[string]func(*local.Host) step.Plan{"master": Master, "worker": Worker} {
		for _, plugin := range []string{config.CNIBridge, config.CNIFlannel, config.CNINone} {
			t.Run(name+" "+plugin, func(t *testing.T) {
				cfg := config.Default()
				cfg.HostName, cfg.CNIPlugin = "one", plugin
				cfg.IPAddress, cfg.MasterIP = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
				order := undone(t, makePlan(installedWith(t, host.Files{Root: t.TempDir()}, cfg)))
				for _, pair := range orderOfUndo {
					first, second := slices.Index(order, pair[0]), slices.Index(order, pair[1])
					if first < 0 || second < 0 {
						continue // not in this plan
					}
					if compared[pair] = true; first > second {
						t.Errorf("%q is undone after %q", pair[0], pair[1])
					}
				}
				if order[len(order)-1] != "remember the settings" {
					t.Errorf("%q is undone last", order[len(order)-1])
				}
			})
		}
	}
	for _, pair := range orderOfUndo {
		if !compared[pair] {
			t.Errorf("no plan has both %q and %q", pair[0], pair[1])
		}
	}
}

// durations are those of the slow steps.
var durations = map[string]time.Duration{"move docker0 onto the flannel subnet": 50 * time.Millisecond}

// undone returns the names of the steps as they are undone. It gives each
// the time in which a step that does not wait would overtake it.
func undone(t *testing.T, p step.Plan) (order []string) {
	t.Helper()
	var mu sync.Mutex
	for _, stage := range p {
		for i := range stage {
			if stage[i].Undo == nil {
				continue
			}
			stage[i].Undo = func(context.Context) error {
				time.Sleep(durations[stage[i].Name] + 5*time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, stage[i].Name)
				return nil
			}
		}
	}
	must.NoError(t, (&step.Runner{}).Undo(t.Context(), p))
	return order
}
