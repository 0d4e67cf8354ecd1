package parts

import (
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// OnDocker0 returns s if pods are attached to docker0, and otherwise an empty
// step, see step.Plan.Compact. If the settings were lost, turndown undoes the
// steps of both kinds of network.
func OnDocker0(h *local.Host, s step.Step) step.Step {
	if h.OwnNetwork() || h.Saved.Lost != nil {
		return s
	}
	return step.Step{}
}

// OnOtherCNI returns s if another CNI plugin provides the pod network.
func OnOtherCNI(h *local.Host, s step.Step) step.Step {
	if h.OwnNetwork() && h.Saved.Lost == nil {
		return step.Step{}
	}
	return s
}

// podCIDR returns the network that the controller manager divides among the
// nodes for another CNI plugin. It is invalid if pods are attached to
// docker0, because flannel then assigns the subnets.
func podCIDR(h *local.Host) netip.Prefix {
	if h.OwnNetwork() {
		return netip.Prefix{}
	}
	return local.Prefix(h.Config.FlannelNetwork)
}

// NetworkManifest returns the manifest of another CNI plugin.
func NetworkManifest(h *local.Host) Manifest {
	return Manifest{h, addon.Where(h.Config.CNIPlugin), host.StateDir + "/network.yaml"}
}
