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

// ownNetwork reports whether pods are on docker0. Otherwise docker0 stays as it
// is, and another plugin makes the network of the pods.
func (h *Host) ownNetwork() bool { return h.Config.CNIPlugin == config.CNIBridge }

// ifOurs drops a step of our own network where another plugin makes it; see
// step.Plan.Compact. Where the settings were lost, turndown undoes both.
func (h *Host) ifOurs(s step.Step) step.Step {
	if h.ownNetwork() || h.saved.Lost != nil {
		return s
	}
	return step.Step{}
}

// ifOther is a step that only another plugin needs.
func (h *Host) ifOther(s step.Step) step.Step {
	if h.ownNetwork() && h.saved.Lost == nil {
		return step.Step{}
	}
	return s
}

// ifNetwork drops a step that waits for the network of the pods where the user
// brings it later.
func (h *Host) ifNetwork(s step.Step) step.Step {
	if h.Config.CNIPlugin == config.CNINone {
		return step.Step{}
	}
	return s
}

// placed says where images go: flanneld of another network runs in a pod.
func (h *Host) placed(all []image.Image) []image.Image {
	for i := range all {
		if all[i].Name == "flannel" && !h.ownNetwork() {
			all[i].Stores = append(slices.Clone(all[i].Stores), image.Containerd)
		}
	}
	return all
}

// podCIDR is what the controller manager cuts up for another plugin; on our own
// network, flannel does that.
func (h *Host) podCIDR() netip.Prefix {
	if h.ownNetwork() {
		return netip.Prefix{}
	}
	return mustPrefix(h.Config.FlannelNetwork)
}

// applyNetwork comes before every other pod: without a network, none starts.
// A control plane that joins finds it in the cluster.
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

// networkProblem looks at the plugin before anything is touched.
func (h *Host) networkProblem(role string) error {
	if role != Master || h.Config.Join || h.ownNetwork() || h.Config.CNIPlugin == config.CNINone || h.Config.CNIPlugin == config.CNIFlannel {
		return nil
	}
	if err := h.networkManifest().check(); err != nil {
		return &step.Problem{Name: "cni-plugin", Text: fmt.Sprintf("cniPlugin: %s: %v", h.Config.CNIPlugin, err),
			Remedy: "give the path or the URL of the plugin's manifest, or one of bridge, flannel, calico, weave, none"}
	}
	return nil
}
