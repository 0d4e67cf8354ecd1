package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ownNetwork reports whether pods are attached to docker0. Otherwise docker0
// does not change, and another CNI plugin provides the pod network.
func (h *Host) ownNetwork() bool { return h.Config.CNIPlugin == config.CNIBridge }

// onDocker0 returns s if pods are attached to docker0, and otherwise an empty
// step, see step.Plan.Compact. If the settings were lost, turndown undoes the
// steps of both kinds of network.
func (h *Host) onDocker0(s step.Step) step.Step {
	if h.ownNetwork() || h.saved.Lost != nil {
		return s
	}
	return step.Step{}
}

// onOtherCNI returns s if another CNI plugin provides the pod network.
func (h *Host) onOtherCNI(s step.Step) step.Step {
	if h.ownNetwork() && h.saved.Lost == nil {
		return step.Step{}
	}
	return s
}

// ifNetwork returns s unless the user installs a CNI plugin later, because s
// waits for the pod network.
func (h *Host) ifNetwork(s step.Step) step.Step {
	if h.Config.CNIPlugin == config.CNINone {
		return step.Step{}
	}
	return s
}

// placed adds flannel's image to containerd if flannel runs in pods.
func (h *Host) placed(all []image.Image) []image.Image {
	for i := range all {
		if all[i].Name == "flannel" && !h.ownNetwork() {
			all[i].Stores = append(slices.Clone(all[i].Stores), image.Containerd)
		}
	}
	return all
}

// podCIDR returns the network that the controller manager divides among the
// nodes for another CNI plugin. It is invalid if pods are attached to
// docker0, because flannel then assigns the subnets.
func (h *Host) podCIDR() netip.Prefix {
	if h.ownNetwork() {
		return netip.Prefix{}
	}
	return mustPrefix(h.Config.FlannelNetwork)
}

// applyNetwork applies the pod network before any other pod, because no pod
// starts without it. On a joining control plane it does nothing.
func (h *Host) applyNetwork() step.Step {
	switch {
	case h.ownNetwork() || h.Config.CNIPlugin == config.CNINone || h.Config.Join:
		return step.Step{}
	case h.Config.CNIPlugin == config.CNIFlannel:
		return h.addons().ApplyManifest("apply the pod network", h.addons().Flannel)
	}
	return h.applyManifest("apply the pod network", h.networkManifest())
}

func (h *Host) networkManifest() manifest {
	return manifest{h, addon.Where(h.Config.CNIPlugin), host.StateDir + "/network.yaml"}
}

// networkProblem returns a problem if the manifest of the CNI plugin cannot
// be applied.
func (h *Host) networkProblem(role string) error {
	if role != Master || h.Config.Join || h.ownNetwork() || h.Config.CNIPlugin == config.CNINone || h.Config.CNIPlugin == config.CNIFlannel {
		return nil
	}
	if err := h.networkManifest().check(); err != nil {
		return &step.Problem{Name: "cni-plugin", Text: fmt.Sprintf("cniPlugin: %s: %v", h.Config.CNIPlugin, err),
			Remedy: "give the path or the URL of the plugin's manifest, or one of bridge, flannel, calico, none"}
	}
	return nil
}
