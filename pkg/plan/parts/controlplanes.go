package parts

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// Balancer returns the balancer of this host.
func Balancer(h *local.Host, role string) balancer.Balancer {
	b := balancer.Balancer{Settings: local.Balancing(h), Files: h.Files, Seeds: []string{h.Config.IPAddress}}
	if role == local.Worker || h.Config.Join {
		b.Seeds = []string{h.Config.MasterIP}
	}
	return b
}

// ControlPlanes lists the control planes of the cluster, as the balancer of
// this host knows them.
func ControlPlanes(h *local.Host) []balancer.ControlPlane {
	state, err := balancer.ReadState(h.Files)
	if err != nil {
		return nil
	}
	return state.ControlPlanes
}

// Several reports whether the cluster has or will have several control
// planes. If the balancer's list was lost, it looks whether the controller
// manager uses leader election.
func Several(h *local.Host) bool {
	state, err := balancer.ReadState(h.Files)
	if err != nil || !state.Told {
		return h.Config.Join || controlplane.Electing(h.Files)
	}
	return len(state.ControlPlanes) > 1
}

// Others lists the known addresses of the other control planes, without those
// that are joining.
func Others(h *local.Host) []string {
	state, err := balancer.ReadState(h.Files)
	all := state.Addresses()
	if (err != nil || !state.Told) && h.Config.Join {
		all = append(all, h.Config.MasterIP)
	}
	return slices.DeleteFunc(all, func(ip string) bool { return ip == h.Config.IPAddress })
}
